// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/frameworks/torchtune.h"

#include <algorithm>
#include <array>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/plan/pod_fields.h"
#include "controller/plan/resources.h"

namespace muster::controller {
namespace {

constexpr std::string_view kSmallLlamas[] = {"llama3_2/1B", "llama3_2/3B"}, kBigLlama = "llama3_3/70B",
                           kQwen = "qwen2_5/1.5B";
// The runtime sets these: the folders of the model and of the result.
constexpr std::array<std::string_view, 4> kOfRuntime = {"output_dir", "tokenizer.path", "tokenizer.merges_file",
                                                        "checkpointer.checkpoint_dir"};

bool IsSmallLlama(std::string_view model) { return model == kSmallLlamas[0] || model == kSmallLlamas[1]; }

bool IsOfRuntime(std::string_view word) {
  const std::string_view key = word.substr(0, word.find('='));
  return key != word && std::find(kOfRuntime.begin(), kOfRuntime.end(), key) != kOfRuntime.end();
}

// torchtune-llama3.2-1b is llama3_2/1B.
std::string ModelOf(std::string_view runtime) {
  const std::vector<std::string_view> parts = Split(runtime, '-');
  if (parts.size() < 3) return std::string(runtime);
  std::string family(parts[1]), size(parts[2]);
  std::replace(family.begin(), family.end(), '.', '_');
  std::transform(size.begin(), size.end(), size.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
  return fmt::format("{}/{}", family, size);
}

struct Tuning {
  std::string model;
  int nodes = 1;
  std::string processes;
  int64_t gpus = 0;
  bool lora = false, qlora = false;

  bool OneDevice() const { return nodes == 1 && (processes == "1" || gpus == 1); }
  bool Meets() const {
    if (nodes > 1) return true;
    const auto number = ParseInt(processes);
    return number ? *number > 1 : gpus > 1;
  }
};

Status Wrong(std::string_view path, std::string_view value, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("{}: {}: {}", path, Quoted(value), what));
}

Status Check(const Tuning& tuning, const TrainJob& job) {
  if (!IsSmallLlama(tuning.model) && tuning.model != kBigLlama && tuning.model != kQwen) {
    return Wrong("spec.runtimeRef.name", job.runtime.name,
                 fmt::format("must have a supported pretrained model, invalid model configured: {}; these are: {}, {}, "
                             "{}, {}; or give the whole command with its recipe and config",
                             tuning.model, kSmallLlamas[0], kSmallLlamas[1], kBigLlama, kQwen));
  }
  const std::string nodes = fmt::format("{}", tuning.nodes);
  if (tuning.nodes > 1 && tuning.model != kBigLlama) {
    return Wrong("spec.trainer.numNodes", nodes, fmt::format("must be 1 for {} model", tuning.model));
  }
  constexpr char kArguments[] = "spec.trainer.args";
  for (const std::string& word : job.trainer->args.value_or(std::vector<std::string>())) {
    if (!IsOfRuntime(word)) continue;
    return Wrong(kArguments, word,
                 fmt::format("must not set immutable config \"{}\" in trainer args; it is managed by the runtime",
                             word.substr(0, word.find('='))));
  }
  if ((tuning.lora || tuning.qlora) && tuning.nodes > 1) {
    return Wrong("spec.trainer.numNodes", nodes,
                 "LoRA fine-tuning is not supported for multi-node training in TorchTune; take 1 node, or leave LoRA's "
                 "arguments out");
  }
  if (!tuning.qlora) return absl::OkStatus();
  if (tuning.model == kQwen) {
    return Wrong(kArguments, "model.quantize_base=True",
                 fmt::format("QLoRA is not supported for {} model; leave it out, LoRA is supported", tuning.model));
  }
  if (!IsSmallLlama(tuning.model)) return absl::OkStatus();
  if (tuning.processes != "auto" && tuning.processes != "1") {
    return Wrong("spec.trainer.numProcPerNode", tuning.processes,
                 fmt::format("must be auto or 1 for {} model", tuning.model));
  }
  if (tuning.gpus == 1) return absl::OkStatus();
  return Wrong("spec.trainer.resourcesPerNode", fmt::format("{}", tuning.gpus),
               fmt::format("must have gpu resource with value 1 for {} model", tuning.model));
}

// {recipe, suffix of the config's name}
std::pair<std::string, std::string> Recipe(const Tuning& tuning) {
  const std::string method = tuning.qlora ? "_qlora" : tuning.lora ? "_lora" : "_full";
  const std::string recipe = method == "_full" ? "full_finetune" : "lora_finetune";
  if (tuning.nodes > 1) return {recipe + "_distributed", method + "_multinode"};
  if (tuning.OneDevice()) return {recipe + "_single_device", method + "_single_device"};
  return {recipe + "_distributed", method};
}

}  // namespace

bool AsksTorchtune(const TrainJob& job) {
  return job.trainer && job.trainer->command && *job.trainer->command == std::vector<std::string>{"tune", "run"};
}

Status AddRecipe(const Draft& draft, const std::string& processes, const std::string& master, Json* container) {
  Tuning tuning{.model = ModelOf(draft.job.runtime.name), .nodes = draft.nodes.pods, .processes = processes};
  tuning.gpus = GpusOf(PartOf(*container, "resources"));
  bool dora = false;
  for (const std::string& word : draft.job.trainer->args.value_or(std::vector<std::string>())) {
    tuning.lora = tuning.lora || word.find("model.lora_attn_modules") != std::string::npos;
    tuning.qlora = tuning.qlora || word == "model.quantize_base=True";
    dora = dora || word == "model.use_dora=True";
  }
  tuning.qlora = tuning.qlora && !dora;
  MUSTER_RETURN_IF_ERROR(Check(tuning, draft.job));

  Json& command = (*container)["command"];
  if (tuning.Meets()) command.push_back(fmt::format("--rdzv_endpoint={}:{}", master, kTrainerPort));
  const auto [recipe, suffix] = Recipe(tuning);
  for (const std::string& word : {recipe, std::string("--config"), tuning.model + suffix}) command.push_back(word);
  for (const ReplicatedJob& of : draft.runtime.jobs) {
    if (of.step != Step::kTrainer) continue;
    const Json* known = FindNamed(PodSpec(of.job_template), "containers", kTrainerContainer);
    if (known == nullptr) continue;
    for (const Json& word : ListField(*known, "command")) {
      if (IsOfRuntime(word.get<std::string>())) command.push_back(word);
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::controller
