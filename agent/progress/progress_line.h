// SPDX-License-Identifier: Apache-2.0
// What one line of a worker's output says about the progress of its training. Pure, thread-safe, linear in the line.
//
// The forms, each as its program writes it:
//
//   bar         tqdm, and Lightning and HF Trainer with it (github.com/tqdm/tqdm): "Epoch 3:  12%|#2 | 112/938
//               [00:02<00:17, 47.4it/s, loss=0.12]"; Lightning's Rich bar: "Epoch 0/4 ---- 112/938 0:00:02 - 0:00:17
//               47.41it/s loss: 0.2"; Keras: "32/1875 [>....] - ETA: 1:20 - loss: 2.30", "32/1875 ---- 5s 3ms/step"
//   pairs       names with numbers: "epoch 3 loss 0.2", "iter 100: loss 2.3451, time 23.4ms" (nanoGPT),
//               "Train Epoch: 1 [640/60000 (1%)] Loss: 2.13" (PyTorch's examples), "iteration 10/ 100 | lm loss:
//               1.0E+00 |" (Megatron-LM), "Epoch: [0][ 10/5005] Loss 6.9e+00 (7.0e+00)"
//   dictionary  HF Trainer's {'loss': 0.69, 'grad_norm': 1.2, 'epoch': 0.1}, and JSON: {"step": 10, "loss": 0.2}
//
// What does not count: bars and numbers of an evaluation, of a download, of a data set's preparation; settings ("max
// steps: 100", "Num Epochs = 3"); a step without another number in a line of prose ("Step 3: install").
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::agent {

// What is not said is empty. `step` is of `epoch` where programs count so; rank_progress.h makes one count of both.
struct ProgressLine {
  std::optional<int64_t> step;   // 0 to kMaxSteps; in a program's own unit: batches, samples
  std::optional<int64_t> steps;  // of how many; at least 1
  std::optional<double> epoch;   // 0 to kMaxEpochs; with a fraction where the program writes one
  std::optional<double> epochs;
  std::optional<double> loss;  // of the training; may be infinite or not a number
  bool operator==(const ProgressLine&) const = default;
};

inline constexpr int64_t kMaxSteps = int64_t{1} << 53;  // a double still counts every one
inline constexpr double kMaxEpochs = 1e9;
// Beyond it the rest of a line is not read.
inline constexpr size_t kMaxProgressLine = 4096;

// A number as a count of steps, or of epochs; nullopt: no program counts so.
std::optional<int64_t> StepsOf(std::optional<double> number);
std::optional<double> EpochsOf(std::optional<double> number);

// Whether the line has a digit and a piece of a word that each form has. Cheap: it looks at each byte once. What it
// lets through may still tell nothing.
bool MayTellProgress(std::string_view line);

// `line`: without its end; may have escape sequences of a terminal. nullopt: it says nothing about the training.
std::optional<ProgressLine> ReadProgressLine(std::string_view line);

}  // namespace muster::agent
