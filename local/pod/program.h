// SPDX-License-Identifier: Apache-2.0
// Turns a pod into what runs on this machine: folders and files to make, and for each container a command line, an
// environment and mounts. Pure: reads no file, starts nothing.
//
// The rules are the kubelet's: $(VAR) in command, args and env; env overrides envFrom; service variables are left out;
// fieldRef and resourceFieldRef; volumes emptyDir, hostPath, persistentVolumeClaim, configMap, secret, downwardAPI,
// projected. Source: Kubernetes, pkg/kubelet/kubelet_pods.go (makeEnvironmentVariables, makeMounts),
// third_party/forked/golang/expansion.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "local/image/root.h"

namespace muster::local {

// What this machine gives to a pod.
struct PodPlace {
  std::string folder;      // absolute: this pod's own folder
  std::string claims;      // absolute: holds a folder for each PersistentVolumeClaim, with its name
  std::string address;     // the pod's IP
  std::string machine;     // the name of this machine: spec.nodeName
  bool own_root = true;    // containers see volumes at their mountPath; else they see this machine's files alone
  int64_t milli_cpus = 0;  // of this machine: the limit of a container that sets none
  int64_t memory_bytes = 0;
  int gpus = 0;
  // Command lines that replace images. The key is the last part of the image's name, or several, without tag and
  // digest:
  // {"muster", {"/usr/bin/muster"}}.
  std::map<std::string, std::vector<std::string>> entrypoints;
  ImageRoots images;
  // A folder that containers with an image root see at the same path. Those without a workingDir run there. Empty:
  // none.
  std::string shown_folder;
  std::vector<std::string> environment;  // "KEY=VALUE" for each container, unless it sets KEY itself: PATH ..
};

// Finds the object of that kind and name; null: there is none.
using FindObject = std::function<const Json*(std::string_view kind, std::string_view name)>;

struct PodFolder {
  std::string path;         // created if nothing is there: a subPath may be a file of a claim
  bool is_private = false;  // mode 0700
  bool of_agent = false;    // `muster install` puts its files there
};

// What a volume of the type hostPath names.
struct HostPath {
  std::string where;  // the path of the field
  std::string path;   // absolute
  std::string type;   // as in the API; empty: none is given
};

struct PodFile {
  std::string path;
  std::string text;
  int mode = 0644;
};

struct PodMount {
  std::string source, target;  // absolute; `source` is empty if it is in memory
  bool read_only = false;
  bool in_memory = false;        // a tmpfs of the container alone
  std::optional<int64_t> bytes;  // its size; nullopt: the kernel's default, half of the memory
};

// How to test whether a container has started, is alive, or is ready.
struct Probe {
  enum class Kind { kExec, kHttp, kTcp };
  Kind kind = Kind::kHttp;
  std::vector<std::string> command;                          // kExec
  std::string path;                                          // kHttp: "/healthz"; unfit bytes are percent-encoded
  std::vector<std::pair<std::string, std::string>> headers;  // kHttp
  int port = 0;                                              // kHttp, kTcp; at the pod's address
  std::chrono::seconds first{0}, period{10}, limit{1};
  int successes = 1, failures = 3;
  std::optional<std::chrono::seconds> grace;  // liveness, startup: replaces the pod's
};

struct ResourceLimits {
  std::optional<int64_t> milli_cpus, memory_bytes;
  bool any() const { return milli_cpus || memory_bytes; }
};

struct ContainerProgram {
  std::string name;
  bool sidecar = false;  // an init container that runs beside the others
  enum class Restart { kNever, kOnFailure, kAlways } restart = Restart::kNever;
  std::vector<std::string> command;
  std::vector<std::string> environment;  // "KEY=VALUE": the whole environment
  std::string root;                      // the folder that it sees as "/", read-only; empty: this machine's files
  std::string working_directory;         // empty: "/"
  std::vector<PodMount> mounts;          // a target comes after its parent folders; none if own_root is false
  std::string termination_message;       // the file on this machine for its terminationMessagePath
  std::optional<Probe> startup, liveness, readiness;
  ResourceLimits limits;
};

struct PodProgram {
  std::string hostname, subdomain;  // <hostname>.<subdomain>.<namespace>.svc.<domain>; subdomain empty: no such name
  std::vector<PodFolder> folders;   // in the order in which to make them
  std::vector<PodFile> files;
  std::vector<HostPath> host_paths;
  std::vector<ContainerProgram> init_containers;  // start one after the other; a sidecar continues to run
  std::vector<ContainerProgram> containers;       // start together
  std::chrono::seconds grace{30};
  ResourceLimits limits;                         // for all containers together
  std::optional<std::chrono::seconds> deadline;  // activeDeadlineSeconds
  // Fields that have no effect here, by path, with the reason: "spec.containers[0].securityContext.runAsUser: ...".
  std::vector<std::string> ignored;
};

// InvalidArgument: a field is wrong, or a container has no command and the command of its image is not known here;
// names the path and the remedy. NotFound: a needed ConfigMap, Secret or key is missing; says how to give it.
StatusOr<PodProgram> ProgramOf(const Json& pod, const PodPlace& place, const FindObject& find);

}  // namespace muster::local
