// SPDX-License-Identifier: Apache-2.0
// The curve of the loss, as inline SVG with an axis, a description and a table. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rendezvous/telemetry.h"

namespace muster::agent {

// One attempt's points, in the order of their time.
struct CurveLine {
  std::string name;  // "attempt 2"
  std::vector<rendezvous::CurvePoint> points;
};

// The last line is the newest one; the others are drawn behind it. "": no line has two points. At most 16 lines are
// drawn, the newest.
std::string LossCurve(std::span<const CurveLine> lines, bool in_epochs);

}  // namespace muster::agent
