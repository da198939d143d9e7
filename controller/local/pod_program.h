// What a pod comes to on this machine: folders and files to make, and for each container a command line, an environment
// and what is mounted where. Pure: reads no file, starts nothing.
//
// Each rule is the kubelet's: $(VAR) in command, args and env; env before envFrom; service variables are left out;
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
#include "controller/local/image_root.h"

namespace muster::controller {

// Where a pod lives here.
struct PodPlace {
  std::string folder;      // absolute: of this pod alone
  std::string claims;      // absolute: has a folder for each PersistentVolumeClaim, by its name
  std::string address;     // the pod's IP
  std::string machine;     // the name of this machine: spec.nodeName
  bool own_root = true;    // volumes are at their mountPath; else the container sees this machine's files alone
  int64_t milli_cpus = 0;  // of this machine: what a container without a limit may use
  int64_t memory_bytes = 0;
  int gpus = 0;
  // Command lines that stand for images, by the image's last part without tag and digest: {"muster",
  // {"/usr/bin/muster"}}.
  std::map<std::string, std::vector<std::string>> entrypoints;
  ImageRoots images;
  // Of this machine: containers with a root of their own see it at the same path and run there, if they do not say
  // where; empty: none.
  std::string shown_folder;
  std::vector<std::string> environment;  // "KEY=VALUE" that each container has, unless it says otherwise: PATH ..
};

// ConfigMap or Secret of that name; null: there is none.
using FindObject = std::function<const Json*(std::string_view kind, std::string_view name)>;

struct PodFolder {
  std::string path;              // made where nothing is there: a subPath may be a file of a claim
  bool in_memory = false;        // emptyDir of medium Memory
  std::optional<int64_t> bytes;  // sizeLimit
  bool of_agent = false;         // `muster install` puts its files there
};

struct PodFile {
  std::string path;
  std::string text;
  int mode = 0644;
};

struct PodMount {
  std::string source, target;  // absolute
  bool read_only = false;
};

// How a container is asked whether it has started, lives, or is ready.
struct Probe {
  enum class Kind { kExec, kHttp, kTcp };
  Kind kind = Kind::kHttp;
  std::vector<std::string> command;  // kExec
  std::string path;                  // kHttp: "/healthz", without bytes that a request cannot have
  std::vector<std::pair<std::string, std::string>> headers;  // kHttp
  int port = 0;                                              // kHttp, kTcp; at the pod's address
  std::chrono::seconds first{0}, period{10}, limit{1};
  int successes = 1, failures = 3;
  std::optional<std::chrono::seconds> grace;  // liveness, startup: in place of the pod's
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
  std::vector<std::string> environment;  // "KEY=VALUE", complete
  std::string root;                      // a folder that it sees as "/", read-only; empty: this machine's files
  std::string working_directory;         // empty: "/"
  std::vector<PodMount> mounts;          // a target comes after those above it; none where own_root is false
  std::string termination_message;       // the file of this machine that stands for its terminationMessagePath
  std::optional<Probe> startup, liveness, readiness;
  ResourceLimits limits;
};

struct PodProgram {
  std::string hostname, subdomain;  // <hostname>.<subdomain>.<namespace>.svc.<domain>; subdomain empty: no name
  std::vector<PodFolder> folders;   // in the order in which they have to be made
  std::vector<PodFile> files;
  std::vector<ContainerProgram> init_containers;  // one after the other; a sidecar goes on
  std::vector<ContainerProgram> containers;       // together
  std::chrono::seconds grace{30};
  ResourceLimits limits;                         // of all containers together
  std::optional<std::chrono::seconds> deadline;  // activeDeadlineSeconds
  // Fields that cannot be honoured here, by path, with the reason: "spec.containers[0].securityContext.runAsUser: ...".
  std::vector<std::string> ignored;
};

// InvalidArgument: a field is wrong, or a container has no command and its image is not known here: names the path and
// the remedy. NotFound: a ConfigMap, Secret or key that is needed is missing: says how to give it.
StatusOr<PodProgram> ProgramOf(const Json& pod, const PodPlace& place, const FindObject& find);

}  // namespace muster::controller
