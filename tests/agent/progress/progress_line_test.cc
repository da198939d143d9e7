// SPDX-License-Identifier: Apache-2.0
#include "agent/progress/progress_line.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace muster::agent {
namespace {

struct Row {
  std::string line;
  ProgressLine want;
};

TEST(ProgressLineTest, ReadsTheFormsOfPrograms) {
  const std::vector<Row> rows = {
      // tqdm
      {"  3%|▎         | 3/100 [00:01<00:40,  2.41it/s]", {.step = 3, .steps = 100}},
      {"Epoch 3:  12%|█▏        | 112/938 [00:02<00:17, 47.4it/s, v_num=3, train_loss=0.123]",
       {.step = 112, .steps = 938, .epoch = 3, .loss = 0.123}},
      {"Training Epoch: 1/3, step 10/100 completed (loss: 0.25): 10%|█  | 11/100 [00:10<01:20,  1.10s/it]",
       {.step = 11, .steps = 100, .epoch = 1, .epochs = 3, .loss = 0.25}},
      {"1|10|Loss: 1.23:  10%|# | 10/100 [1:00:10<9:01:30, 361.0s/it]", {.step = 10, .steps = 100, .loss = 1.23}},
      {" 12%|#2 | 1.20k/10.0k [00:02<00:17, 500it/s]", {.step = 1200, .steps = 10000}},
      {"My trainloader:  12%|#2 | 112/938 [00:02<00:17, 47.4it/s]", {.step = 112, .steps = 938}},
      {"112it [00:02, 47.4it/s, loss=0.5]", {.step = 112, .loss = 0.5}},
      {"  0%|          | 0/100 [00:00<?, ?it/s]", {.step = 0, .steps = 100}},
      // Rich, by Lightning
      {"Epoch 0/4 ━━━━━━╸━━━ 112/938 0:00:02 • 0:00:17 47.41it/s v_num: 3.000 train_loss: 0.245",
       {.step = 112, .steps = 938, .epoch = 0, .epochs = 4, .loss = 0.245}},
      // Keras
      {"  32/1875 [>.............................] - ETA: 1:20 - loss: 2.3026 - accuracy: 0.1",
       {.step = 32, .steps = 1875, .loss = 2.3026}},
      {"\x1b[1m 32/1875\x1b[0m \x1b[32m━\x1b[0m\x1b[37m━━━━\x1b[0m \x1b[1m5s\x1b[0m 3ms/step - accuracy: 0.10 - loss: "
       "2.25",
       {.step = 32, .steps = 1875, .loss = 2.25}},
      {"Epoch 1/5", {.epoch = 1, .epochs = 5}},
      // HF Trainer, JSON
      {"{'loss': 0.6931, 'grad_norm': 1.25, 'learning_rate': 5e-05, 'epoch': 0.1}", {.epoch = 0.1, .loss = 0.6931}},
      {"{'loss': '0.6931', 'grad_norm': '1.25', 'epoch': '0.1'}", {.epoch = 0.1, .loss = 0.6931}},
      {"{'eval_loss': 0.5, 'eval_accuracy': 0.75, 'epoch': 1.0}", {.epoch = 1}},
      {R"({"step": 10, "loss": 0.25, "lr": 0.001})", {.step = 10, .loss = 0.25}},
      // pairs
      {"epoch 3 loss 0.25", {.epoch = 3, .loss = 0.25}},
      {"step 7 loss 1e-3", {.step = 7, .loss = 0.001}},
      {"step 77 of 400 loss 0.5", {.step = 77, .steps = 400, .loss = 0.5}},
      {"epoch 2 of 10, step 77 of 400", {.step = 77, .steps = 400, .epoch = 2, .epochs = 10}},
      {"iter 100: loss 2.3451, time 23.40ms, mfu 12.30%", {.step = 100, .loss = 2.3451}},
      {"step 250: train loss 2.1250, val loss 2.5000", {.step = 250, .loss = 2.125}},
      {"Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.125000", {.step = 640, .steps = 60000, .epoch = 1, .loss = 2.125}},
      {"Epoch: [0][  10/5005]\tTime  0.345 ( 0.500)\tData  0.001 ( 0.1)\tLoss 6.9375e+00 (7.0e+00)",
       {.step = 10, .steps = 5005, .epoch = 0, .loss = 6.9375}},
      {"Epoch [2/10], Step [100/600], Loss: 0.2500",
       {.step = 100, .steps = 600, .epoch = 2, .epochs = 10, .loss = 0.25}},
      {" [2026-11-29 23:00:00] iteration       10/     100 | consumed samples:   80 | elapsed time per iteration (ms): "
       "1234.5 | learning rate: 1.0E-04 | global batch size:     8 | lm loss: 1.025000E+01 | loss scale: 1.0 |",
       {.step = 10, .steps = 100, .loss = 10.25}},
      {"11/29 23:00:00 - mmengine - INFO - Epoch(train)   [1][  50/1172]  lr: 1.0e-02  eta: 0:09:43  loss: 0.3125",
       {.step = 50, .steps = 1172, .epoch = 1, .loss = 0.3125}},
      {"[rank0]:[titan] step: 10  loss:  8.1250  memory: 20.00GiB(25.0%)  tps: 1,234  mfu: 12.3%",
       {.step = 10, .loss = 8.125}},
      {"[2026-11-29 23:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[0.001], mom=[0.9]",
       {.step = 10}},
      {"INFO:train:global_step=12 train_loss=0.5", {.step = 12, .loss = 0.5}},
      {"step 3/10", {.step = 3, .steps = 10}},
      {"loss=inf step=4", {.step = 4, .loss = INFINITY}},
  };
  for (const Row& row : rows) {
    const auto got = ReadProgressLine(row.line);
    ASSERT_TRUE(got) << row.line;
    EXPECT_EQ(got->step, row.want.step) << row.line;
    EXPECT_EQ(got->steps, row.want.steps) << row.line;
    EXPECT_EQ(got->epoch, row.want.epoch) << row.line;
    EXPECT_EQ(got->epochs, row.want.epochs) << row.line;
    EXPECT_EQ(got->loss, row.want.loss) << row.line;
  }
}

TEST(ProgressLineTest, ALossThatIsNoNumber) {
  const auto got = ReadProgressLine("epoch 3 loss nan");
  ASSERT_TRUE(got && got->loss);
  EXPECT_TRUE(std::isnan(*got->loss));
}

TEST(ProgressLineTest, SkipsWhatIsNotTheTraining) {
  for (const char* line : {
           "",
           "hello",
           "Step 3: install the driver",
           "step 3",
           "Step 3 of 4: install the driver",
           "Validation DataLoader 0:  50%|█████     | 5/10 [00:00<00:00, 50.1it/s]",
           "Map (num_proc=4): 100%|██████████| 1000/1000 [00:01<00:00, 900 examples/s]",
           "Loading checkpoint shards:  33%|███▎      | 1/3 [00:01<00:02,  1.0s/it]",
           "Tokenizing train (num_proc=4):  12%|#2 | 112/938 [00:02<00:17, 47.4it/s]",
           "model.safetensors:  12%|█▏        | 1.2G/9.9G [00:02<00:17, 500MB/s]",
           "  Num Epochs = 3",
           "  Total optimization steps = 1,875",
           "max steps: 100, warmup steps: 10",
           "{'train_runtime': 12.5, 'train_samples_per_second': 80.0, 'train_loss': 0.5, 'epoch': 3.0}",
           "val loss 0.5",
           "loss scale: 65536.0",
           "2026/11/29 12:00:03 connecting to 10.0.0.1/24",
           "01/02 12:00:03 INFO ready",
           "epochs: 3",
           "nan",
       }) {
    EXPECT_EQ(ReadProgressLine(line), std::nullopt) << line;
  }
}

TEST(ProgressLineTest, SkipsNumbersThatNoProgramCounts) {
  EXPECT_EQ(ReadProgressLine("step -1/10"), std::nullopt);
  EXPECT_EQ(ReadProgressLine("epoch 1e300 step 1.5"), std::nullopt);
  EXPECT_EQ(ReadProgressLine("1/0 [00:01<00:02, 1it/s]"), std::nullopt);
  EXPECT_EQ(ReadProgressLine("99999999999999999999999/99999999999999999999999999 [00:01<00:02, 1it/s]"), std::nullopt);
}

}  // namespace
}  // namespace muster::agent
