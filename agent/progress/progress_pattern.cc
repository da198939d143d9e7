// SPDX-License-Identifier: Apache-2.0
#include "agent/progress/progress_pattern.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"

namespace muster::agent {
namespace {

constexpr int64_t kMostMemory = int64_t{1} << 20;  // bytes of an expression
constexpr std::array<std::string_view, 5> kGroups = {"step", "steps", "epoch", "epochs", "loss"};

}  // namespace

ProgressPattern::ProgressPattern(std::unique_ptr<re2::RE2> expression) : expression_(std::move(expression)) {}
ProgressPattern::~ProgressPattern() = default;

StatusOr<std::shared_ptr<const ProgressPattern>> ProgressPattern::Compile(const std::string& expression) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMostMemory);
  auto compiled = std::make_unique<re2::RE2>(expression, options);
  if (!compiled->ok()) return absl::InvalidArgumentError(compiled->error());
  bool tells = false;
  for (const auto& [name, index] : compiled->NamedCapturingGroups()) {
    if (std::find(kGroups.begin(), kGroups.end(), name) == kGroups.end()) {
      return absl::InvalidArgumentError(
          fmt::format("the group \"{}\" has no meaning; want step, steps, epoch, epochs, loss", name));
    }
    tells |= name == "step" || name == "epoch" || name == "loss";
  }
  if (!tells) {
    return absl::InvalidArgumentError(
        R"(want a named group for what the line tells, such as (?P<step>\d+), epoch or loss)");
  }
  return std::shared_ptr<const ProgressPattern>(new ProgressPattern(std::move(compiled)));
}

std::optional<ProgressLine> ProgressPattern::Read(std::string_view line) const {
  line = line.substr(0, kMaxProgressLine);
  std::vector<re2::StringPiece> groups(static_cast<size_t>(expression_->NumberOfCapturingGroups()) + 1);
  const re2::StringPiece text(line.data(), line.size());
  if (!expression_->Match(text, 0, line.size(), re2::RE2::UNANCHORED, groups.data(), static_cast<int>(groups.size()))) {
    return std::nullopt;
  }
  const auto number = [&](const char* name) -> std::optional<double> {
    const auto& names = expression_->NamedCapturingGroups();
    const auto group = names.find(name);
    if (group == names.end()) return std::nullopt;
    const re2::StringPiece found = groups[static_cast<size_t>(group->second)];
    return ParseDouble(Strip(std::string_view(found.data(), found.size())));
  };
  ProgressLine read{.step = StepsOf(number("step")),
                    .steps = StepsOf(number("steps")),
                    .epoch = EpochsOf(number("epoch")),
                    .epochs = EpochsOf(number("epochs")),
                    .loss = number("loss")};
  if (read.steps == 0) read.steps.reset();
  if (read.epochs == 0) read.epochs.reset();
  if (!read.step && !read.epoch && !read.loss) return std::nullopt;
  return read;
}

}  // namespace muster::agent
