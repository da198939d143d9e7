// SPDX-License-Identifier: Apache-2.0
#include "local/state/rank_marks.h"

#include "base/environment.h"
#include "base/text.h"

namespace muster::local {

std::string RankMark(int rank) { return fmt::format("[rank{}]:", rank); }

bool MarkRanks(std::vector<std::string>* environment) {
  Environment known = Environment::Of(*environment);
  const auto processes = known.NonBlank("PET_NPROC_PER_NODE");
  if (!processes || processes == "1") return false;
  if (known.FirstOf("PET_TEE PET_REDIRECTS PET_LOG_LINE_PREFIX_TEMPLATE TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE")) {
    return false;
  }
  known.Set("PET_TEE", "3");
  known.Set("PET_LOG_LINE_PREFIX_TEMPLATE", "[rank${rank}]:");
  // Without it, torchrun would make a folder in TMPDIR for each run.
  if (!known.NonBlank("PET_LOG_DIR")) known.Set("PET_LOG_DIR", "/dev/null");
  *environment = known.entries();
  return true;
}

void LimitThreads(std::vector<std::string>* environment) {
  Environment known = Environment::Of(*environment);
  const auto processes = ParseInt(known.Get("PET_NPROC_PER_NODE").value_or(""));
  if (!processes || *processes < 2 || known.NonBlank("OMP_NUM_THREADS")) return;
  known.Set("OMP_NUM_THREADS", "1");
  *environment = known.entries();
}

}  // namespace muster::local
