// SPDX-License-Identifier: Apache-2.0
// Writes JSON as YAML.
#include <algorithm>

#include "base/text.h"
#include "controller/api/yaml.h"
#include "controller/api/yaml_scalar.h"

namespace muster::controller {
namespace {

constexpr size_t kStep = 2;

bool IsPrintable(char c) { return c >= 0x20 && c < 0x7f; }

// Whether readers get the same text if `text` stands without quotes.
bool IsPlain(std::string_view text) {
  if (text.empty() || !std::all_of(text.begin(), text.end(), IsPrintable)) return false;
  if (text.front() == ' ' || text.back() == ' ' || text.back() == ':' || text == "<<" || text == "-") return false;
  if (std::string_view("?:,[]{}#&*!|>'\"%@`=").find(text.front()) != std::string_view::npos) return false;
  if (text.starts_with("- ") || text.starts_with("---") || text.starts_with("...")) return false;
  if (text.find(": ") != std::string_view::npos || text.find(" #") != std::string_view::npos) return false;
  // Other readers take 12:30 for a number in base 60, and 2026-01-02 for a time.
  const bool digit = text[0] >= '0' && text[0] <= '9';
  if (digit && text.find_first_of(":-") != std::string_view::npos) return false;
  const auto read = PlainScalar(text);
  return read && read->is_string();
}

// Whether `text` has several lines and can stand as a block ("|"), whose first line sets the indentation.
bool IsBlock(std::string_view text) {
  if (text.find('\n') == std::string_view::npos || text.ends_with("\n\n") || text.front() == ' ' ||
      text.front() == '\n' || text.front() == '\t') {
    return false;
  }
  const auto fits = [](char c) { return IsPrintable(c) || c == '\n' || c == '\t'; };
  return std::all_of(text.begin(), text.end(), fits) && text.find(" \n") == std::string_view::npos &&
         text.find("\t\n") == std::string_view::npos && text.back() != ' ' && text.back() != '\t';
}

std::string Scalar(const Json& value) {
  if (value.is_object()) return "{}";
  if (value.is_array()) return "[]";
  if (value.is_string() && IsPlain(value.get_ref<const std::string&>())) return value.get<std::string>();
  return WriteJson(value);  // JSON's texts are YAML's texts in double quotes
}

std::string KeyText(const std::string& key) { return IsPlain(key) ? key : WriteJson(Json(key)); }

class Writer {
 public:
  std::string Take() { return std::move(out_); }

  // Writes a map or list that is not empty. `begun`: the indentation of its first line is written already.
  void Block(const Json& value, size_t indent, bool begun) {
    for (auto item = value.begin(); item != value.end(); ++item) {
      if (!begun) out_.append(indent, ' ');
      begun = false;
      if (value.is_object()) {
        Key(KeyText(item.key()), indent);
        Value(*item, indent, /*in_map=*/true);
      } else {
        out_ += "-";
        Value(*item, indent, /*in_map=*/false);
      }
    }
  }

  // Writes the value behind "key:" or "-".
  void Value(const Json& value, size_t indent, bool in_map) {
    if (value.is_structured() && !value.empty()) {
      out_ += in_map ? "\n" : " ";
      Block(value, in_map && value.is_array() ? indent : indent + kStep, /*begun=*/!in_map);
    } else if (value.is_string() && IsBlock(value.get_ref<const std::string&>())) {
      Lines(value.get_ref<const std::string&>(), indent + kStep);
    } else {
      out_ += " " + Scalar(value) + "\n";
    }
  }

 private:
  // In YAML, a key of more than 1024 characters needs a "?".
  void Key(const std::string& key, size_t indent) {
    constexpr size_t kLongestSimple = 1000;
    if (key.size() <= kLongestSimple) {
      out_ += key + ":";
      return;
    }
    out_ += "? " + key + "\n";
    out_.append(indent, ' ');
    out_ += ":";
  }

  void Lines(std::string_view text, size_t indent) {
    const bool ended = text.ends_with('\n');
    out_ += ended ? " |\n" : " |-\n";
    if (ended) text.remove_suffix(1);
    for (std::string_view line : Split(text, '\n')) {
      if (!line.empty()) out_.append(indent, ' ');
      out_ += line;
      out_ += '\n';
    }
  }

  std::string out_;
};

}  // namespace

std::string WriteYaml(const Json& object) {
  if (!object.is_structured() || object.empty()) return Scalar(object) + "\n";
  Writer writer;
  writer.Block(object, 0, /*begun=*/false);
  return writer.Take();
}

}  // namespace muster::controller
