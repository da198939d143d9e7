// SPDX-License-Identifier: Apache-2.0
// The parts of the live page, each made of the facts alone. Pure.
#pragma once

#include <string>

#include "agent/page/live_page.h"

namespace muster::agent {

std::string HeadSection(const LiveFacts& facts);
std::string FiguresSection(const LiveFacts& facts);
std::string CurveSection(const LiveFacts& facts);
std::string TimeSection(const LiveFacts& facts);
std::string HeatSection(const LiveFacts& facts);
// The timeline of the rounds, and why each began and ended.
std::string RoundsSection(const LiveFacts& facts);
std::string LookCloserSection(const LiveFacts& facts, const LiveOptions& options);
std::string AboutSection(const LiveFacts& facts, const LiveOptions& options);

// A sentence without what changes by itself: of "Training: 8 workers on 1 node, in round 2, for 12 min" the part before
// ", for "; also before " since ". A screen reader says it when it changes.
std::string_view Steady(std::string_view sentence);

}  // namespace muster::agent
