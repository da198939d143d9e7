// SPDX-License-Identifier: Apache-2.0
#include "agent/page/widgets.h"

#include <algorithm>

#include "agent/report/report_text.h"
#include "base/text.h"

namespace muster::agent {

std::string PanelContent(std::string_view title, std::string_view html) {
  return html.empty() ? "" : fmt::format("<h2>{}</h2>\n{}", title, html);
}

std::string Panel(std::string_view title, std::string_view html, bool half) {
  if (html.empty()) return "";
  return fmt::format("<section class=\"panel{}\">{}</section>\n", half ? " half" : "", PanelContent(title, html));
}

std::string Tiles(std::span<const Tile> tiles) {
  std::string html = "<dl class=\"tiles\">\n";
  for (const Tile& tile : tiles) {
    html += fmt::format("<div><dt>{}</dt><dd>{}", EscapeHtml(tile.name), EscapeHtml(tile.value));
    if (!tile.note.empty()) html += fmt::format("<small>{}</small>", EscapeHtml(tile.note));
    if (tile.share) {
      html += fmt::format(
          "<svg width=\"100%\" height=\"4\" aria-hidden=\"true\"><rect class=\"track\" width=\"100%\" height=\"4\" "
          "rx=\"2\"/><rect class=\"ok\" width=\"{:.1f}%\" height=\"4\" rx=\"2\"/></svg>",
          100 * std::clamp(*tile.share, 0.0, 1.0));
    }
    html += "</dd></div>\n";
  }
  return html + "</dl>\n";
}

std::string Warnings(std::span<const PageWarning> warnings) {
  if (warnings.empty()) return "";
  std::string html = "<ul class=\"warnings\">\n";
  for (const PageWarning& warning : warnings) {
    html += fmt::format("<li{}>{}</li>\n", warning.severe ? " class=\"fatal\"" : "", EscapeHtml(warning.text));
  }
  return html + "</ul>\n";
}

std::string Commands(std::span<const Command> commands) {
  std::string html;
  for (const Command& command : commands) {
    html += fmt::format("<p class=\"muted\">{}</p><div class=\"command\"><code>{}</code></div>\n",
                        EscapeHtml(command.what), EscapeHtml(command.line));
  }
  return html;
}

std::string Facts(std::span<const Fact> facts) {
  std::string html;
  for (const Fact& fact : facts) {
    if (fact.value.empty()) continue;
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", EscapeHtml(fact.name), EscapeHtml(fact.value));
  }
  return html.empty() ? "" : fmt::format("<dl class=\"facts\">\n{}</dl>\n", html);
}

std::string PathList(std::span<const std::string> paths, size_t most, std::string_view noun) {
  std::string html = "<ul class=\"paths\">\n";
  const size_t named = std::min(paths.size(), most);
  for (const std::string& path : paths.first(named)) {
    html += fmt::format("<li><code>{}</code></li>\n", EscapeHtml(path));
  }
  if (named < paths.size()) {
    html +=
        fmt::format("<li class=\"muted\">and of {}</li>\n", Counted(static_cast<int64_t>(paths.size() - named), noun));
  }
  return html + "</ul>";
}

std::string ShellWord(std::string_view word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("%+,-./:=@_").find(c) != std::string_view::npos;
  });
  if (plain) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace muster::agent
