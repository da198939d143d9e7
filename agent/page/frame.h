// SPDX-License-Identifier: Apache-2.0
// The frame of every page of Muster: the live page of a run, and the report about one. One style, the same landmarks,
// and a Content-Security-Policy that allows nothing but the page's own style and script. Pure.
#pragma once

#include <string>

namespace muster::agent {

struct Frame {
  std::string title;   // text
  std::string status;  // HTML, at the end of the first line
  std::string main;    // HTML, with a level-1 heading
  std::string footer;  // HTML
  // With the script that follows /events. Where scripts are off, the browser asks for the page again every 5 s.
  bool live = false;
};
std::string FramedPage(const Frame& frame);

// The policy as the page itself has it. It names the hashes of style and script, so no other ones are applied.
std::string SecurityPolicy(bool live);

}  // namespace muster::agent
