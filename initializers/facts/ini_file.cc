// SPDX-License-Identifier: Apache-2.0
#include "initializers/facts/ini_file.h"

#include "base/quoted.h"
#include "base/text.h"

namespace muster::initializers {
namespace {

constexpr size_t kLongestName = 256;  // bytes of a key; each key below another one repeats its name

Status Bad(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

class Reader {
 public:
  Status Line(std::string_view line) {
    const std::string_view content = Strip(line);
    if (content.empty() || content[0] == '#' || content[0] == ';') return absl::OkStatus();
    const size_t indent = line.find_first_not_of(" \t\r\f\v");
    if (value_ && indent > indent_) return Continue(content);
    indent_ = indent;
    if (content[0] == '[' && content.find(']') != std::string_view::npos) return StartSection(content);
    return StartValue(content);
  }

  IniFile file() && { return std::move(file_); }

 private:
  Status StartSection(std::string_view content) {
    value_ = nullptr;
    const std::string_view name = Strip(content.substr(1, content.rfind(']') - 1));
    if (name.empty()) return Bad("a section has no name");
    auto [found, fresh] = file_.try_emplace(std::string(name));
    if (!fresh) return Bad(fmt::format("section {} is there twice; make it one", Quoted(name)));
    section_ = &found->second;
    return absl::OkStatus();
  }

  Status StartValue(std::string_view content) {
    if (!section_) return Bad("there is no [section] before this line");
    const size_t at = content.find_first_of("=:");
    if (at == std::string_view::npos) return Bad("there is no '=' in this line");
    key_ = Lower(Strip(content.substr(0, at)));
    return Put(key_, Strip(content.substr(at + 1)));
  }

  Status Put(const std::string& key, std::string_view value) {
    if (key.empty() || key.ends_with('.')) return Bad("there is no name before the '='");
    if (key.size() > kLongestName) return Bad(fmt::format("a name has more than {} bytes", kLongestName));
    auto [found, fresh] = section_->try_emplace(key, value);
    if (!fresh) return Bad(fmt::format("{} is there twice; keep one", Quoted(key)));
    if (key == key_) value_ = &found->second;
    return absl::OkStatus();
  }

  // Takes an indented line below a key.
  Status Continue(std::string_view content) {
    if (!value_->empty()) {
      *value_ += '\n';
      *value_ += content;
      return absl::OkStatus();
    }
    const size_t at = content.find('=');
    if (at == std::string_view::npos) return Bad(fmt::format("there is no '=' in this line below {}", Quoted(key_)));
    return Put(key_ + '.' + std::string(Strip(content.substr(0, at))), Strip(content.substr(at + 1)));
  }

  IniFile file_;
  IniSection* section_ = nullptr;
  std::string key_;               // the key that indented lines belong to
  std::string* value_ = nullptr;  // value of key_
  size_t indent_ = 0;             // indent of that key, or of the section
};

}  // namespace

StatusOr<IniFile> ParseIni(std::string_view text, std::string_view path) {
  if (text.size() > kLongestIniFile) {
    return absl::InvalidArgumentError(
        fmt::format("{} has {} bytes, more than {}: is it the right file?", path, text.size(), kLongestIniFile));
  }
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  Reader reader;
  int number = 0;
  for (std::string_view line : Split(text, '\n')) {
    ++number;
    if (Status status = reader.Line(line); !status.ok()) {
      return Annotate(status, fmt::format("{}, line {}", path, number));
    }
  }
  return std::move(reader).file();
}

}  // namespace muster::initializers
