// SPDX-License-Identifier: Apache-2.0
#include "controller/api/protobuf_fields.h"

namespace muster::controller {
namespace {

using Field = ProtobufField;
using Message = ProtobufMessage;
using enum ProtobufField::Kind;

// meta/v1
constexpr Field kOwnerFields[] = {{1, "kind"}, {3, "name"}, {4, "uid"}, {5, "apiVersion"}, {6, "controller", kFlag}};
constexpr Message kOwner{kOwnerFields};

constexpr Field kObjectMetaFields[] = {{1, "name"},
                                       {3, "namespace"},
                                       {5, "uid"},
                                       {6, "resourceVersion"},
                                       {7, "generation", kNumber},
                                       {8, "creationTimestamp", kTime},
                                       {9, "deletionTimestamp", kTime},
                                       {10, "deletionGracePeriodSeconds", kNumber},
                                       {11, "labels", kTextMap},
                                       {12, "annotations", kTextMap},
                                       {13, "ownerReferences", kMessages, &kOwner},
                                       {14, "finalizers", kTexts}};
constexpr Message kObjectMeta{kObjectMetaFields};

constexpr Field kListMetaFields[] = {{2, "resourceVersion"}, {3, "continue"}};
constexpr Message kListMeta{kListMetaFields};

constexpr Field kStatusFields[] = {{3, "message"}, {4, "reason"}, {6, "code", kNumber}};
constexpr Message kStatus{kStatusFields};

// Of a pod and of a Job.
constexpr Field kConditionFields[] = {
    {1, "type"}, {2, "status"}, {4, "lastTransitionTime", kTime}, {5, "reason"}, {6, "message"}};
constexpr Message kCondition{kConditionFields};

// core/v1.Pod
constexpr Field kResourcesFields[] = {{1, "limits", kQuantities}};
constexpr Message kResources{kResourcesFields};

constexpr Field kContainerFields[] = {{1, "name"}, {8, "resources", kMessage, &kResources}, {24, "restartPolicy"}};
constexpr Message kContainer{kContainerFields};

constexpr Field kGateFields[] = {{1, "name"}};
constexpr Message kGate{kGateFields};

constexpr Field kSchedulingGroupFields[] = {{1, "podGroupName"}};
constexpr Message kSchedulingGroup{kSchedulingGroupFields};

constexpr Field kPodSpecFields[] = {{2, "containers", kMessages, &kContainer},
                                    {3, "restartPolicy"},
                                    {10, "nodeName"},
                                    {11, "hostNetwork", kFlag},
                                    {16, "hostname"},
                                    {19, "schedulerName"},
                                    {20, "initContainers", kMessages, &kContainer},
                                    {38, "schedulingGates", kMessages, &kGate},
                                    {43, "schedulingGroup", kMessage, &kSchedulingGroup}};
constexpr Message kPodSpec{kPodSpecFields};

constexpr Field kWaitingFields[] = {{1, "reason"}, {2, "message"}};
constexpr Message kWaiting{kWaitingFields};

constexpr Field kRunningFields[] = {{1, "startedAt", kTime}};
constexpr Message kRunning{kRunningFields};

constexpr Field kTerminatedFields[] = {
    {1, "exitCode", kNumber}, {3, "reason"}, {4, "message"}, {5, "startedAt", kTime}, {6, "finishedAt", kTime}};
constexpr Message kTerminated{kTerminatedFields};

constexpr Field kContainerStateFields[] = {{1, "waiting", kMessage, &kWaiting},
                                           {2, "running", kMessage, &kRunning},
                                           {3, "terminated", kMessage, &kTerminated}};
constexpr Message kContainerState{kContainerStateFields};

constexpr Field kContainerStatusFields[] = {{1, "name"},
                                            {2, "state", kMessage, &kContainerState},
                                            {3, "lastState", kMessage, &kContainerState},
                                            {5, "restartCount", kNumber},
                                            {8, "containerID"}};
constexpr Message kContainerStatus{kContainerStatusFields};

constexpr Field kPodStatusFields[] = {{1, "phase"},
                                      {2, "conditions", kMessages, &kCondition},
                                      {3, "message"},
                                      {4, "reason"},
                                      {6, "podIP"},
                                      {8, "containerStatuses", kMessages, &kContainerStatus},
                                      {10, "initContainerStatuses", kMessages, &kContainerStatus}};
constexpr Message kPodStatus{kPodStatusFields};

constexpr Field kPodFields[] = {
    {1, "metadata", kMessage, &kObjectMeta}, {2, "spec", kMessage, &kPodSpec}, {3, "status", kMessage, &kPodStatus}};
constexpr Message kPod{kPodFields};

constexpr Field kPodListFields[] = {{1, "metadata", kMessage, &kListMeta}, {2, "items", kMessages, &kPod}};
constexpr Message kPodList{kPodListFields};

// batch/v1.Job
constexpr Message kPresent{};  // only its presence is read

constexpr Field kTemplateSpecFields[] = {{3, "restartPolicy"}};
constexpr Message kTemplateSpec{kTemplateSpecFields};

constexpr Field kTemplateFields[] = {{2, "spec", kMessage, &kTemplateSpec}};
constexpr Message kTemplate{kTemplateFields};

constexpr Field kJobSpecFields[] = {{1, "parallelism", kNumber},
                                    {2, "completions", kNumber},
                                    {6, "template", kMessage, &kTemplate},
                                    {7, "backoffLimit", kNumber},
                                    {10, "suspend", kFlag},
                                    {11, "podFailurePolicy", kMessage, &kPresent},
                                    {12, "backoffLimitPerIndex", kNumber},
                                    {16, "successPolicy", kMessage, &kPresent}};
constexpr Message kJobSpec{kJobSpecFields};

constexpr Field kJobStatusFields[] = {{1, "conditions", kMessages, &kCondition},
                                      {4, "active", kNumber},
                                      {5, "succeeded", kNumber},
                                      {6, "failed", kNumber},
                                      {7, "completedIndexes"},
                                      {9, "ready", kNumber}};
constexpr Message kJobStatus{kJobStatusFields};

constexpr Field kJobFields[] = {
    {1, "metadata", kMessage, &kObjectMeta}, {2, "spec", kMessage, &kJobSpec}, {3, "status", kMessage, &kJobStatus}};
constexpr Message kJob{kJobFields};

constexpr Field kJobListFields[] = {{1, "metadata", kMessage, &kListMeta}, {2, "items", kMessages, &kJob}};
constexpr Message kJobList{kJobListFields};

}  // namespace

const ProtobufMessage* ProtobufOf(std::string_view api_version, std::string_view kind) {
  if (api_version == "v1" && kind == "Pod") return &kPod;
  if (api_version == "v1" && kind == "PodList") return &kPodList;
  if (api_version == "batch/v1" && kind == "Job") return &kJob;
  if (api_version == "batch/v1" && kind == "JobList") return &kJobList;
  if (api_version == "v1" && kind == "Status") return &kStatus;
  return nullptr;
}

}  // namespace muster::controller
