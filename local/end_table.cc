// SPDX-License-Identifier: Apache-2.0
#include "local/end_table.h"

#include <algorithm>
#include <map>

#include "base/exit_codes.h"
#include "base/text.h"

namespace muster::local {

std::string EndTable(const std::vector<PodEnd>& ends) {
  std::map<std::string, std::vector<const PodEnd*>> hosts;
  size_t width = 4;
  for (const PodEnd& end : ends) {
    hosts[end.host].push_back(&end);
    width = std::max(width, end.host.size());
  }
  std::string table;
  for (const auto& [host, its_ends] : hosts) {
    std::vector<std::string> texts;
    for (const PodEnd* end : its_ends) {
      texts.push_back(fmt::format("{} after {:.2f} s",
                                  end->exit_code ? DescribeExit(*end->exit_code) : "stopped before its program ran,",
                                  std::chrono::duration<double>(end->lived).count()));
    }
    table += fmt::format("{:<{}}  {}\n", host, width, Join(texts, ", then "));
  }
  return table;
}

}  // namespace muster::local
