// SPDX-License-Identifier: Apache-2.0
// torchtune: the recipe and the config by model, nodes and devices, and refusals.
#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

using ::testing::HasSubstr;

constexpr char kOwnCommand[] =
    "[tune, run, --rdzv_endpoint=localhost:29500, full_finetune_distributed, --config, llama3_2/1B_full, "
    "dataset=d, output_dir=/workspace/output, tokenizer.path=/t, checkpointer.checkpoint_dir=/m, lr=1]";
constexpr char kLora[] = "model.lora_attn_modules=[q_proj]", kQlora[] = "model.quantize_base=True";

struct Asked {
  std::string model = "llama3.2-1b";
  std::string trainer = "{}";  // spec.trainer without command and args
  std::vector<std::string> args;
  std::string gpus = "2";
};

TrainJob JobOf(const Asked& asked) {
  Json trainer = YamlOf(asked.trainer);
  trainer["command"] = {"tune", "run"};
  trainer["args"] = asked.args;
  TrainJob job = JobWith(WriteYaml({{"trainer", trainer}}));
  job.runtime.name = "torchtune-" + asked.model;
  return job;
}

Runtime RuntimeOf(const Asked& asked) {
  return TrainerRuntime({.policy = "{numNodes: 1, torch: {}}",
                         .container = std::string("{command: ") + kOwnCommand +
                                      ", resources: {limits: {nvidia.com/gpu: " + asked.gpus + "}}}"});
}

TEST(Torchtune, TakesTheRecipeThatFits) {
  struct Row {
    Asked asked;
    std::string recipe, config;
    bool meets;
  };
  const std::string own_processes = "{numProcPerNode: 1}";
  for (const Row& row : std::vector<Row>{
           {{}, "full_finetune_distributed", "llama3_2/1B_full", true},
           {{.gpus = "1"}, "full_finetune_single_device", "llama3_2/1B_full_single_device", false},
           {{.trainer = own_processes}, "full_finetune_single_device", "llama3_2/1B_full_single_device", false},
           {{.trainer = "{numProcPerNode: 4}"}, "full_finetune_distributed", "llama3_2/1B_full", true},
           {{.model = "llama3.2-3b", .args = {kLora}}, "lora_finetune_distributed", "llama3_2/3B_lora", true},
           {{.model = "qwen2.5-1.5b", .args = {kLora}, .gpus = "1"},
            "lora_finetune_single_device",
            "qwen2_5/1.5B_lora_single_device",
            false},
           {{.args = {kLora, kQlora}, .gpus = "1"},
            "lora_finetune_single_device",
            "llama3_2/1B_qlora_single_device",
            false},
           {{.args = {kLora, kQlora, "model.use_dora=True"}}, "lora_finetune_distributed", "llama3_2/1B_lora", true},
           {{.model = "llama3.3-70b", .args = {kLora, kQlora}},
            "lora_finetune_distributed",
            "llama3_3/70B_qlora",
            true},
           {{.model = "llama3.3-70b", .trainer = "{numNodes: 2}"},
            "full_finetune_distributed",
            "llama3_3/70B_full_multinode",
            true},
       }) {
    SCOPED_TRACE(row.asked.model + row.asked.trainer + row.config);
    Runtime runtime = RuntimeOf(row.asked);
    TrainJob job = JobOf(row.asked);
    job.meta.annotations[kAgentAnnotation] = "off";  // it would move words into variables
    const TrainJobPlan plan = PlanOf(job, runtime);
    std::vector<std::string> wanted = {"tune", "run"};
    if (row.meets) wanted.push_back("--rdzv_endpoint=train-node-0-0.train:29500");
    for (const std::string& word :
         {row.recipe, std::string("--config"), row.config, std::string("output_dir=/workspace/output"),
          std::string("tokenizer.path=/t"), std::string("checkpointer.checkpoint_dir=/m")}) {
      wanted.push_back(word);
    }
    const Json container = ContainerOf(plan.jobs[0]);
    EXPECT_EQ(At(container, "/command"), Json(wanted));
    EXPECT_EQ(At(container, "/args"), Json(row.asked.args));
    EXPECT_EQ(EnvOf(container, "PET_MASTER_ADDR"), "-");
    EXPECT_NE(EnvOf(container, "PET_NPROC_PER_NODE"), "-");
  }
}

TEST(Torchtune, AnotherCommandIsLeftAlone) {
  const TrainJobPlan plan = PlanOf(JobWith("{trainer: {command: [tune, run, recipe]}}"), RuntimeOf({}));
  EXPECT_EQ(At(ContainerOf(plan.jobs[0]), "/command"),
            YamlOf("{c: [/muster-agent/muster, exec, --, tune, run, recipe]}")["c"]);
  EXPECT_EQ(EnvOf(ContainerOf(plan.jobs[0]), "PET_MASTER_ADDR"), "train-node-0-0.train");
}

TEST(Torchtune, WhatNoRecipeServesIsRefused) {
  struct Row {
    Asked asked;
    std::string message;
  };
  for (const Row& row : std::vector<Row>{
           {{.model = "gpt-2b"},
            "spec.runtimeRef.name: 'torchtune-gpt-2b': must have a supported pretrained model, invalid model "
            "configured: "
            "gpt/2B; these are: llama3_2/1B, llama3_2/3B, llama3_3/70B, qwen2_5/1.5B"},
           {{.model = "gpt"}, "invalid model configured: torchtune-gpt"},
           {{.trainer = "{numNodes: 2}"}, "spec.trainer.numNodes: '2': must be 1 for llama3_2/1B model"},
           {{.model = "qwen2.5-1.5b", .args = {kQlora}}, "QLoRA is not supported for qwen2_5/1.5B model"},
           {{.trainer = "{numProcPerNode: 2}", .args = {kQlora}},
            "spec.trainer.numProcPerNode: '2': must be auto or 1 for llama3_2/1B model"},
           {{.args = {kQlora}},
            "spec.trainer.resourcesPerNode: '2': must have gpu resource with value 1 for llama3_2/1B model"},
           {{.model = "llama3.3-70b", .trainer = "{numNodes: 2}", .args = {kLora}},
            "LoRA fine-tuning is not supported for multi-node training in TorchTune"},
           {{.args = {"lr=1", "output_dir=/mine"}},
            "spec.trainer.args: 'output_dir=/mine': must not set immutable config \"output_dir\" in trainer args; it "
            "is "
            "managed by the runtime"},
       }) {
    SCOPED_TRACE(row.message);
    EXPECT_THAT(Refusal(JobOf(row.asked), RuntimeOf(row.asked)), HasSubstr(row.message));
  }
}

}  // namespace
}  // namespace muster::controller
