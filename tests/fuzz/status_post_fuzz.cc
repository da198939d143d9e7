// SPDX-License-Identifier: Apache-2.0
// libFuzzer: a post to the status server. The first line is the path, the second the header Authorization; the
// rest is the body. The answers of the API server are judged as those of the metrics server, too.
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/kube/webhook/metrics_access.h"
#include "controller/kube/webhook/status_post.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  using namespace muster::controller;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const auto line = [&rest] {
    const std::string_view found = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(found.size() + 1, rest.size()));
    return found;
  };
  const std::string_view path = line();
  const auto post = ReadStatusPost(path, line());
  if (post.ok()) {
    Must(!post->ns.empty() && !post->name.empty() && IsVisible(post->token));
    Must(fmt::format("/apis/trainer.kubeflow.org/v1alpha1/namespaces/{}/trainjobs/{}/status", post->ns, post->name) ==
         path);
  }
  const auto status = ReadTrainerStatus(rest);
  Must(!status.ok() || status->is_null() || status->is_object());
  for (const Status& wrong : {post.status(), status.status()}) {
    if (!wrong.ok()) Must(Json::parse(AnswerOf(wrong).body, nullptr, false).is_object());
  }
  const Json answer = ReadJsonTop(rest, 20);
  if (!answer.is_discarded()) {
    const auto pod = JudgeToken({"team", "train", "abc"}, answer);
    Must(!pod.ok() || !pod->uid.empty());
    const auto user = UserOf(answer);
    if (user) Must(AccessReviewFor(*user)["spec"]["user"] == (*user)["username"]);
    const int code = JudgeAccess(user.value_or(Json::object()), answer).code;
    Must(code == 403 || (code == 200 && FlagField(PartOf(answer, "status"), "allowed", false)));
  }
  return 0;
}
