// SPDX-License-Identifier: Apache-2.0
#include "agent/page/live_facts.h"

#include <utility>

namespace muster::agent {

LiveFacts FactsOf(LiveView view) {
  LiveFacts facts;
  facts.pace = PaceOf(view.report);
  facts.time = TimeOf(view.report);
  facts.sentence = Sentence(view);
  facts.warnings = WarningsOf(view);
  facts.view = std::move(view);
  return facts;
}

}  // namespace muster::agent
