// SPDX-License-Identifier: Apache-2.0
// The controller and `muster local`: YAML, kubeconfigs, watches, posts of a status, images, pods as processes.
#include <sys/mman.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/text.h"
#include "controller/admission/review.h"
#include "controller/admission/validate_train_job.h"
#include "controller/api/lenient.h"
#include "controller/api/pytorch_job.h"
#include "controller/api/quantity.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"
#include "controller/api/yaml.h"
#include "controller/kube/client/cluster_access.h"
#include "controller/kube/client/protobuf_object.h"
#include "controller/kube/client/watch_frames.h"
#include "controller/kube/client/watch_lines.h"
#include "controller/kube/webhook/status_post.h"
#include "controller/reconcile/agent_status.h"
#include "controller/reconcile/observed.h"
#include "local/image/layer.h"
#include "local/pod/program.h"
#include "local/state/job_progress.h"
#include "local/state/run_record.h"
#include "tests/controller/kube/protobuf_writer.h"
#include "tests/linear/linear.h"

namespace muster::controller {
namespace {

void Yaml(const std::string& text) {
  const auto documents = ReadYaml(text);
  if (!documents.ok()) return;
  for (const YamlDocument& document : *documents) {
    WriteYaml(document.object);
    document.LineOf("spec.trainer.env[0].name");
  }
}

void Kubeconfig(const std::string& text) { (void)ReadKubeconfig(text, "/nowhere", ""); }

void Review(const std::string& text) {
  const auto request = ReadReview(text);
  if (request.ok()) ValidateTrainJob(*request, {}, {});
}

void AgentStatus(const std::string& text) { (void)ReadAgentStatus("uid", text, WallTime()); }

void Children(const std::string& text) {
  const auto object = ReadJson(text, 100);
  if (!object.ok()) return;
  (void)ReadJob(*object);
  (void)ReadPod(*object);
}

void Job(const std::string& text) {
  const auto object = ReadJson(text, 100);
  if (!object.ok()) return;
  (void)ReadTrainJob(*object);
  (void)ReadRuntime(*object);
  (void)ReadPyTorchJob(*object);
}

std::string Variable(size_t number) { return fmt::format(R"({{"name":"V{}","value":"a"}},)", number); }

// In pieces of 10 bytes.
void Watch(const std::string& text) {
  WatchLines lines(size_t{16} << 20);
  for (size_t at = 0; at < text.size(); at += 10) {
    lines.Take(std::string_view(text).substr(at, 10), [](std::string_view, bool) { return true; });
  }
}

// In pieces of 10 bytes.
void Frames(const std::string& text) {
  WatchFrames frames(size_t{16} << 20);
  for (size_t at = 0; at < text.size(); at += 10) {
    frames.Take(std::string_view(text).substr(at, 10), [](std::string_view, bool) { return true; });
  }
}

// A pod whose metadata has these fields.
void Protobuf(const std::string& fields) {
  const std::string pod = protobuf::Text(1, fields);
  const std::string bytes = protobuf::Envelope("v1", "Pod", pod);
  if (const auto object = ReadProtobufObject(bytes); object.ok()) (void)ReadPod(*object);
  (void)ProtobufAsJson(bytes, size_t{1} << 40);
}

void Post(const std::string& text) {
  (void)ReadStatusPost(text, text);
  (void)ReadTrainerStatus(text);
}

// A tar whose only file has another name.
void Image(const std::string& bytes) {
  const Descriptor file(memfd_create("linear", MFD_CLOEXEC));
  ASSERT_EQ(write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  lseek(file.get(), 0, SEEK_SET);
  (void)local::FileInTar(file.get(), "linear.tar", "index.json", 1 << 20);
}

// A pod with one container.
void Pod(const std::function<void(Json* container)>& change) {
  Json pod = {{"metadata", {{"name", "p"}}},
              {"spec",
               {{"volumes", {{{"name", "v"}, {"emptyDir", Json::object()}}}},
                {"containers", {{{"name", "c"}, {"image", "i"}, {"command", {"true"}}}}}}}};
  change(&pod["spec"]["containers"][0]);
  for (const bool own_root : {true, false}) {
    (void)local::ProgramOf(pod,
                           {.folder = "/state/pod",
                            .claims = "/state/claims",
                            .address = "127.0.0.2",
                            .machine = "here",
                            .own_root = own_root,
                            .milli_cpus = 2000,
                            .memory_bytes = 1 << 30},
                           [](std::string_view, std::string_view) { return nullptr; });
  }
}

// Each line is a variable.
void Variables(const std::string& text) {
  Pod([&text](Json* container) {
    Json& env = (*container)["env"] = Json::array();
    for (const std::string_view line : Split(text, '\n')) {
      env.push_back({{"name", fmt::format("V{}", env.size())}, {"value", line}});
    }
  });
}

void Argument(const std::string& text) {
  Pod([&text](Json* container) { (*container)["args"] = {text}; });
}

void MountPath(const std::string& text) {
  Pod([&text](Json* container) {
    (*container)["volumeMounts"] = {{{"name", "v"}, {"mountPath", "/a"}, {"subPath", text}},
                                    {{"name", "v"}, {"mountPath", "/" + text}}};
  });
}

// A mount for each line.
void Mounts(const std::string& text) {
  Pod([&text](Json* container) {
    Json& mounts = (*container)["volumeMounts"] = Json::array();
    for (const std::string_view line : Split(text, '\n')) mounts.push_back({{"name", "v"}, {"mountPath", line}});
  });
}

const std::vector<LinearRow> kRows = {
    {"admission", "Variables",
     Numbers(
         Variable,
         R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE",)"
         R"("resource":{"group":"trainer.kubeflow.org","version":"v1alpha1","resource":"trainjobs"},)"
         R"("name":"a","namespace":"b","object":{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob",)"
         R"("metadata":{"name":"a"},"spec":{"runtimeRef":{"name":"r"},"trainer":{"env":[)",
         R"({"name":"W"}]}}}}})"),
     Review},
    {"children", "Variables",
     Numbers(Variable, R"({"metadata":{"name":"a","uid":"u"},"spec":{"containers":[{"name":"node","env":[)", "{}]}]}}"),
     Children},
    {"train_job", "Variables",
     Numbers(Variable, R"({"metadata":{"name":"a"},"spec":{"runtimeRef":{"name":"r"},"trainer":{"env":[)",
             R"({"name":"W"}]}}})"),
     Job},
    {"yaml", "Lists", Repeats("- a\n", "a:\n"), Yaml},
    {"yaml", "Blocks", Repeats("-   &a |\n  x\n  y\n", "a:\n"), Yaml},
    {"yaml", "Maps", Numbers([](size_t number) { return fmt::format("key{}: value\n", number); }), Yaml},
    {"yaml", "Nested", Numbers([](size_t number) { return fmt::format("- key{}: {{a: [b, c]}}\n", number); }, "a:\n"),
     Yaml},
    {"yaml", "LongKey",
     [](size_t parts) {
       std::string text = "? " + std::string(10 * parts, 'k') + "\n:\n";
       for (size_t number = 0; number < parts; ++number) text += fmt::format("  a{}: b\n", number);
       return text;
     },
     Yaml},
    {"yaml", "LongKeyOfLists",
     [](size_t parts) {
       std::string text = "? " + std::string(10 * parts, 'k') + "\n:\n";
       for (size_t number = 0; number < parts; ++number) text += "- [a]\n";
       return text;
     },
     Yaml},
    {"yaml", "Documents", Repeats("---\na: b\n"), Yaml},
    {"yaml", "Anchors",
     Numbers([](size_t number) { return fmt::format("- &a{} b\n- *a{}\n", number, number); }, "a:\n"), Yaml},
    {"yaml", "Merges",
     Numbers([](size_t number) { return fmt::format("a{}: {{<<: *a, b: c}}\n", number); }, "a: &a {d: e}\n"), Yaml},
    {"yaml", "Flow", Repeats("a,", "a: [", "]"), Yaml},
    {"yaml", "OpenFlow", Repeats("[", "a: "), Yaml},
    {"yaml", "Plain", Repeats("word\n  ", "a: "), Yaml},
    {"yaml", "Blanks", Repeats(" ", "a: b"), Yaml},
    {"yaml", "EmptyLines", Repeats("\n", "a: b\n"), Yaml},
    {"yaml", "Block", Repeats("  word\n", "a: |\n"), Yaml},
    {"yaml", "Folded", Repeats("  word\n\n", "a: >\n"), Yaml},
    {"yaml", "Quoted", Repeats("word\\n\\\n ", "a: \"", "\""), Yaml},
    {"yaml", "OpenQuote", Repeats("word ", "a: '"), Yaml},
    {"yaml", "Comments", Repeats("# word\n", "a: b\n"), Yaml},
    {"yaml", "Items",
     Numbers([](size_t number) { return fmt::format("- {{kind: A, metadata: {{name: a{}}}}}\n", number); },
             "apiVersion: v1\nkind: List\nitems:\n"),
     Yaml},
    {"yaml", "Quantity", Repeats("1"), [](const std::string& text) { (void)ParseQuantity(text); }},
    {"kubeconfig", "Users",
     Numbers([](size_t number) { return fmt::format("- {{name: u{}, user: {{}}}}\n", number); },
             "current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
             "clusters: [{name: c, cluster: {server: \"https://host\"}}]\nusers:\n"),
     Kubeconfig},
    {"kubeconfig", "Data",
     Repeats("QUJD\n     ",
             "current-context: c\ncontexts: [{name: c, context: {cluster: c}}]\nclusters:\n- name: c\n"
             "  cluster:\n    server: https://host\n    certificate-authority-data: |\n     "),
     Kubeconfig},
    {"watch_lines", "Lines", Repeats("{\"type\":\"ADDED\"}\n"), Watch},
    {"watch_lines", "OneLine", Repeats("word "), Watch},
    {"protobuf", "Frames", Numbers([](size_t) { return protobuf::Frame("an event"); }), Frames},
    {"protobuf", "OneFrame", Repeats("bytes ", std::string_view("\x0f\0\0\0", 4)), Frames},
    {"protobuf", "Labels", Numbers([](size_t number) {
       return protobuf::Text(11, protobuf::Text(1, fmt::format("l{}", number)) + protobuf::Text(2, "v"));
     }),
     Protobuf},
    {"protobuf", "OneLabel",
     Numbers([](size_t) { return protobuf::Text(11, protobuf::Text(1, "l") + protobuf::Text(2, "v")); }), Protobuf},
    {"protobuf", "Owners", Numbers([](size_t) { return protobuf::Text(13, ""); }), Protobuf},
    {"protobuf", "Skipped", Numbers([](size_t) { return protobuf::Number(99, 1); }), Protobuf},
    {"protobuf", "NoCharacters", [](size_t parts) { return protobuf::Text(1, std::string(parts, '\xff')); }, Protobuf},
    {"agent_status", "Nodes", Repeats("{\"rank\":0},", R"({"restart_count":0,"nodes":[)", "{}]}"), AgentStatus},
    {"agent_status", "Lost", Repeats("{\"address\":\"a\"},", R"({"restart_count":0,"lost":[)", "{}]}"), AgentStatus},
    {"agent_status", "Words", Repeats("word ", R"({"restart_count":0,"overcome":{"message":")", "\"}}"), AgentStatus},
    {"status_post", "Path", Repeats("a/", "/apis/trainer.kubeflow.org/v1alpha1/namespaces/"), Post},
    {"status_post", "Words", Repeats("word ", "{\"trainerStatus\":{\"lastUpdatedTime\":\"", "\"}}"), Post},
    {"image", "Zeros", [](size_t parts) { return std::string(512 * parts, '\0'); }, Image},
    {"run_record", "Files", Repeats("\"a\",", R"({"kind":"TrainJob","name":"a","pid":1,"files":[)", "\"a\"]}"),
     [](const std::string& text) { (void)local::ParseRunRecord(text); }},
    {"run_record", "Status", Repeats("{\"a\":{}},", R"({"training":{"position":1},"nodes":[)", "{}]}"),
     [](const std::string& text) { (void)local::ParseJobProgress(text); }},
    {"local_pod", "Variables", Repeats("$(V0)\n", "value\n"), Variables},
    {"local_pod", "Doubling", Numbers([](size_t number) { return fmt::format("$(V{0})$(V{0})\n", number); }, "value\n"),
     Variables},
    {"local_pod", "OpenVariables", Repeats("$("), Argument},
    {"local_pod", "Paths", Repeats("/v/a "), Argument},
    {"local_pod", "SubPath", Repeats("a/"), MountPath},
    {"local_pod", "Mounts", Numbers([](size_t number) { return fmt::format("/m{}\n", number); }), Mounts},
};

INSTANTIATE_TEST_SUITE_P(Controller, Linear, testing::ValuesIn(kRows), NameOfRow);

}  // namespace
}  // namespace muster::controller
