// SPDX-License-Identifier: Apache-2.0
// Paths on a page, as links where a browser can follow them. Pure.
#pragma once

#include <string>
#include <string_view>

namespace muster::agent {

// The path as text. If it lies below `place`, the folder of the page, it is a relative link, so that a copy of the
// whole folder keeps its links. `place` empty: no links.
std::string PathLink(std::string_view path, std::string_view place);

// The folder of the file `path`: "." of "report.html".
std::string FolderOfFile(std::string_view path);

}  // namespace muster::agent
