#include "controller/reconcile/written.h"

#include <openssl/rand.h>

#include <array>

#include "base/text.h"
#include "controller/plan/elastic.h"
#include "controller/plan/token.h"
#include "controller/reconcile/observed.h"
#include "controller/reconcile/ssh_keys.h"

namespace muster::controller {
namespace {

constexpr size_t kTokenBytes = 32;

StatusOr<std::string> NewToken() {
  std::array<unsigned char, kTokenBytes> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    return absl::UnavailableError("OpenSSL has no random bytes for the token of the job");
  }
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

}  // namespace

StatusOr<Json> Filled(const Action& action) {
  switch (action.fill) {
    case PlannedObject::Fill::kNothing:
      return action.object();
    case PlannedObject::Fill::kToken: {
      MUSTER_ASSIGN_OR_RETURN(const std::string token, NewToken());
      return WithToken(action.object(), token);
    }
    case PlannedObject::Fill::kSshKeys: {
      MUSTER_ASSIGN_OR_RETURN(const SshKeys keys, MakeSshKeys());
      return WithSshKeys(action.object(), keys);
    }
  }
  return absl::InternalError("an object is to be filled with nothing known");
}

Json PatchOf(const Action& action) {
  Json patch;
  patch["metadata"]["uid"] = action.uid;
  switch (action.kind) {
    case Action::Kind::kScaleJob:
      patch["spec"] = {{"parallelism", action.pods}, {"completions", action.pods}};
      break;
    case Action::Kind::kSuspendJob:
    case Action::Kind::kSuspendJobSet:
    case Action::Kind::kResumeJobSet:
      patch["spec"]["suspend"] = action.kind != Action::Kind::kResumeJobSet;
      break;
    case Action::Kind::kEndPod:
      patch["metadata"]["annotations"][kEndedAnnotation] = action.container;
      patch["spec"]["activeDeadlineSeconds"] = 1;
      break;
    case Action::Kind::kAnnotatePod:
      patch["metadata"]["annotations"][kNodesAnnotation] = fmt::format("{}", action.pods);
      break;
    case Action::Kind::kCreateService:
    case Action::Kind::kCreateObject:
    case Action::Kind::kCreateJob:
    case Action::Kind::kCreatePod:
    case Action::Kind::kCreatePodOfJob:
    case Action::Kind::kAdoptPod:
    case Action::Kind::kDeleteJob:
    case Action::Kind::kDeletePod:
    case Action::Kind::kDropPod:
    case Action::Kind::kDeleteService:
    case Action::Kind::kDeleteObject:
    case Action::Kind::kDeleteJobSet:
    case Action::Kind::kDeleteOwner:
      break;
  }
  return patch;
}

}  // namespace muster::controller
