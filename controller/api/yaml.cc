// SPDX-License-Identifier: Apache-2.0
#include "controller/api/yaml.h"

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "base/quoted.h"
#include "base/text.h"
#include "base/utf8.h"
#include "controller/api/fields.h"
#include "controller/api/yaml_blocks.h"
#include "controller/api/yaml_scalar.h"

namespace muster::controller {
namespace {

constexpr int kDeepest = 100;
// Lines are for messages only. A longer path has no line and is not made longer, nor has any path beyond kMostPathBytes
// in all.
constexpr size_t kLongestPath = 512;
constexpr size_t kMostPathBytes = 16 << 20;
constexpr size_t kBytesForNode = 64;  // of anchored and repeated text, per node of the budget

constexpr std::string_view kYamlTag = "tag:yaml.org,2002:";

// The size of a value that an alias repeats. depth: levels of nesting.
struct Weight {
  size_t nodes = 0, bytes = 0;
  int depth = 0;
};

Weight WeightOf(const Json& value) {
  Weight weight{.nodes = 1};
  if (value.is_string()) weight.bytes = value.get_ref<const std::string&>().size();
  if (!value.is_structured()) return weight;
  weight.depth = 1;
  for (const auto& [key, inner] : value.items()) {
    const Weight more = WeightOf(inner);
    weight.nodes += more.nodes;
    weight.bytes += more.bytes + (value.is_object() ? key.size() : 0);
    weight.depth = std::max(weight.depth, more.depth + 1);
  }
  return weight;
}

// Bounds the nodes of all documents of a text, and the bytes in anchors and aliases. Throws beyond a bound.
class Budget {
 public:
  explicit Budget(size_t most_nodes) : nodes_(most_nodes), bytes_(most_nodes * kBytesForNode), most_(most_nodes) {}

  void Take(const YAML::Mark& mark, size_t nodes, size_t bytes = 0) {
    if (nodes > nodes_ || bytes > bytes_) {
      throw YAML::ParserException(mark, fmt::format("it makes more than {} nodes; use fewer aliases or files", most_));
    }
    nodes_ -= nodes;
    bytes_ -= bytes;
  }

 private:
  size_t nodes_, bytes_;
  const size_t most_;
};

// Builds JSON from the parser's events. Throws YAML::ParserException, as the parser does; Parse() catches it.
class Builder : public YAML::EventHandler {
 public:
  // `text_size`: bytes of the whole text.
  Builder(Budget& budget, size_t text_size) : budget_(budget), text_size_(text_size) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (WantsKey()) throw YAML::ParserException(mark, "a key is empty; write a string");
    Leaf(mark, anchor, Json());
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw YAML::ParserException(mark, "the alias is inside the node that it refers to");
    const auto& [value, weight] = found->second;
    budget_.Take(mark, weight.nodes, weight.bytes);
    CheckDepth(mark, weight.depth);
    if (WantsKey()) return Key(mark, value);
    Enter(mark);
    Add(mark, value);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (WantsKey() && tag == "?" && text == "<<") {
      budget_.Take(mark, 1);
      stack_.back().has_key = stack_.back().merge_key = true;
      return;
    }
    // The parser accepts a text that ends right after an opening quote.
    if (tag == "!" && text.empty() && static_cast<size_t>(mark.pos) + 1 >= text_size_) {
      throw YAML::ParserException(mark, "the text ends within quotes");
    }
    Leaf(mark, anchor, Scalar(mark, tag, text));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Start(mark, tag, "seq", anchor, Json::array());
  }
  void OnSequenceEnd() override { End(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Start(mark, tag, "map", anchor, Json::object());
  }
  void OnMapEnd() override {
    Merge(stack_.back());
    End();
  }

  YamlDocument Take() { return {.object = std::move(root_), .lines = std::move(lines_)}; }
  const YAML::Mark& start() const { return start_; }

 private:
  // A list or map whose end has not come yet.
  struct Frame {
    Json value;
    YAML::Mark mark;
    YAML::anchor_t anchor = YAML::NullAnchor;
    size_t path_size = 0;  // of its path
    std::string key;       // the value of this key comes next
    bool has_key = false, merge_key = false;
    std::vector<Json> merges;  // the maps under <<, in their order
  };

  struct Anchored {
    Json value;
    Weight weight;
  };

  bool WantsKey() const { return !stack_.empty() && stack_.back().value.is_object() && !stack_.back().has_key; }

  Json Scalar(const YAML::Mark& mark, const std::string& tag, const std::string& text) {
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return text;
    auto plain = PlainScalar(text);
    if (!plain) throw YAML::ParserException(mark, fmt::format("{} is not a number that JSON has", Quoted(text)));
    if (tag == "?") return *std::move(plain);
    const std::string_view name = tag.starts_with(kYamlTag) ? std::string_view(tag).substr(kYamlTag.size()) : "";
    const bool fits = (name == "int" && plain->is_number_integer()) || (name == "float" && plain->is_number()) ||
                      (name == "bool" && plain->is_boolean()) || (name == "null" && plain->is_null());
    if (fits) return *std::move(plain);
    if (name == "timestamp") return text;
    throw YAML::ParserException(
        mark, fmt::format("{} with the tag {} cannot be read; leave the tag out", Quoted(text), Quoted(tag)));
  }

  void CheckDepth(const YAML::Mark& mark, int more) {
    if (static_cast<int>(stack_.size()) + more <= kDeepest) return;
    throw YAML::ParserException(mark, fmt::format("it is nested more than {} levels deep", kDeepest));
  }

  void Leaf(const YAML::Mark& mark, YAML::anchor_t anchor, Json value) {
    budget_.Take(mark, 1);
    Keep(mark, anchor, value);
    if (WantsKey()) return Key(mark, value);
    Enter(mark);
    Add(mark, std::move(value));
  }

  void Start(const YAML::Mark& mark, const std::string& tag, std::string_view kind, YAML::anchor_t anchor, Json value) {
    if (tag != "?" && tag != "!" && tag != fmt::format("{}{}", kYamlTag, kind)) {
      throw YAML::ParserException(mark, fmt::format("the tag {} is not known; leave it out", Quoted(tag)));
    }
    if (WantsKey()) throw YAML::ParserException(mark, "a key is a list or a map; write a string");
    budget_.Take(mark, 1);
    CheckDepth(mark, 1);
    Enter(mark);
    stack_.push_back({.value = std::move(value), .mark = mark, .anchor = anchor, .path_size = path_.size()});
  }

  void End() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    Keep(frame.mark, frame.anchor, frame.value);
    Add(frame.mark, std::move(frame.value));
  }

  // Keeps a copy of an anchored value, for aliases.
  void Keep(const YAML::Mark& mark, YAML::anchor_t anchor, const Json& value) {
    if (anchor == YAML::NullAnchor) return;
    const Weight weight = WeightOf(value);
    budget_.Take(mark, weight.nodes, weight.bytes);
    anchors_[anchor] = {value, weight};
  }

  void Key(const YAML::Mark& mark, const Json& value) {
    Frame& frame = stack_.back();
    if (value.is_structured() || value.is_null()) {
      throw YAML::ParserException(mark, "a key is not a string; write a string");
    }
    frame.key = value.is_string() ? value.get<std::string>() : WriteJson(value);
    if (frame.value.contains(frame.key)) {
      throw YAML::ParserException(mark, fmt::format("the key {} is there twice in one map", Quoted(frame.key)));
    }
    frame.has_key = true;
    frame.merge_key = false;
    if (path_.size() <= kLongestPath) path_ = PathOf(path_, std::string_view(frame.key));
    Note(mark);
  }

  // Sets path_ before a value. Key() has set it already for a value in a map.
  void Enter(const YAML::Mark& mark) {
    if (stack_.empty()) {
      start_ = mark;
    } else if (stack_.back().value.is_object()) {
      return;
    } else if (path_.size() <= kLongestPath) {
      path_ = PathOf(path_, stack_.back().value.size());
    }
    Note(mark);
  }

  void Note(const YAML::Mark& mark) {
    if (path_.size() > kLongestPath || path_bytes_ + path_.size() > kMostPathBytes) return;
    path_bytes_ += path_.size();
    lines_.emplace(path_, mark.line + 1);
  }

  void Add(const YAML::Mark& mark, Json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return;
    }
    Frame& frame = stack_.back();
    if (frame.value.is_array()) {
      frame.value.push_back(std::move(value));
    } else if (frame.merge_key) {
      AddMerge(mark, frame, std::move(value));
    } else {
      frame.value[frame.key] = std::move(value);
    }
    frame.has_key = frame.merge_key = false;
    path_.resize(frame.path_size);
  }

  static void AddMerge(const YAML::Mark& mark, Frame& frame, Json value) {
    Json maps = value.is_array() ? std::move(value) : Json::array({std::move(value)});
    for (Json& map : maps) {
      if (!map.is_object()) throw YAML::ParserException(mark, "<< needs a map, or a list of maps");
      frame.merges.push_back(std::move(map));
    }
  }

  // Adds the merged maps' keys. The map's own keys win, then those of the first merged map.
  static void Merge(Frame& frame) {
    for (Json& map : frame.merges) {
      for (auto& [key, value] : map.get_ref<Json::object_t&>()) frame.value.emplace(key, std::move(value));
    }
  }

  Budget& budget_;
  const size_t text_size_;
  Json root_;
  YAML::Mark start_;
  std::vector<Frame> stack_;
  std::unordered_map<YAML::anchor_t, Anchored> anchors_;
  std::string path_;
  size_t path_bytes_ = 0;
  std::map<std::string, int> lines_;
};

Status WrongAt(int line, int column, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("line {}, column {}: {}", line + 1, column + 1, what));
}

// Refuses bytes that the parser would take for the end of the text, or for another encoding.
Status CheckBytes(std::string_view text) {
  int line = 0;
  size_t line_start = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = FirstCharacter(text.substr(at));
    const bool control = character.code < 0x20 && text[at] != '\t' && text[at] != '\n' && text[at] != '\r';
    if (!character.valid || control) {
      return WrongAt(line, static_cast<int>(at - line_start),
                     character.valid ? "a control character is there; take it out, or write it as \"\\x..\""
                                     : "it is not UTF-8; save the file in UTF-8");
    }
    at += character.size;
    if (text[at - 1] == '\n') ++line, line_start = at;
  }
  return absl::OkStatus();
}

// The text for the parser, with an empty comment behind the last line end. Without it the parser would accept a text
// that ends inside quotes right after a line end.
std::string WithEnd(std::string_view text) {
  const size_t end = text.find_last_not_of(" \t");
  if (end == std::string_view::npos || (text[end] != '\n' && text[end] != '\r')) return std::string(text);
  return std::string(text.substr(0, end + 1)) + "#";
}

StatusOr<std::vector<YamlDocument>> Parse(std::string_view text, size_t most_nodes) {
  MUSTER_RETURN_IF_ERROR(CheckBytes(text));
  std::vector<YamlDocument> documents;
  try {
    const std::string whole = WithEnd(WithBlocksFurtherRight(text));
    std::istringstream stream(whole);
    YAML::Parser parser(stream);
    Budget budget(most_nodes);
    while (true) {
      Builder builder(budget, whole.size());
      if (!parser.HandleNextDocument(builder)) return documents;
      YamlDocument document = builder.Take();
      if (document.object.is_null()) continue;
      if (!document.object.is_object()) {
        return WrongAt(builder.start().line, builder.start().column,
                       fmt::format("{} is not an object", Shown(document.object)));
      }
      documents.push_back(std::move(document));
    }
  } catch (const YAML::Exception& error) {
    return WrongAt(error.mark.line, error.mark.column, error.msg);
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(fmt::format("it cannot be read as YAML: {}", error.what()));
  }
}

// Adds `document`, or the items of a v1 List, each with its own lines.
void AddItems(YamlDocument document, std::vector<YamlDocument>& documents) {
  const Json* items = FindField(document.object, "items");
  const bool is_list = TextField(document.object, "kind") == "List" &&
                       TextField(document.object, "apiVersion") == "v1" && items != nullptr && items->is_array();
  if (!is_list) {
    documents.push_back(std::move(document));
    return;
  }
  Json taken = std::move(document.object["items"]);
  for (size_t i = 0; i < taken.size(); ++i) {
    const std::string root = PathOf("items", i);
    YamlDocument item{.object = std::move(taken[i])};
    item.lines[""] = document.LineOf(root);
    const std::string below = root + ".";
    for (auto at = document.lines.lower_bound(below); at != document.lines.end() && at->first.starts_with(below);
         ++at) {
      item.lines.emplace(at->first.substr(below.size()), at->second);
    }
    AddItems(std::move(item), documents);
  }
}

}  // namespace

int YamlDocument::LineOf(std::string_view path) const {
  while (true) {
    const auto found = lines.find(std::string(path));
    if (found != lines.end()) return found->second;
    if (path.empty()) return 1;
    const size_t end = path.find_last_of(".[");
    path = path.substr(0, end == std::string_view::npos ? 0 : end);
  }
}

Status LocatedIn(const YamlDocument& document, std::string_view file, const Status& error) {
  const std::string_view message = Message(error);
  const int line = document.LineOf(message.substr(0, message.find(": ")));
  return Annotate(error, fmt::format("{}:{}", file, line));
}

StatusOr<std::vector<YamlDocument>> ReadYaml(std::string_view text, size_t most_nodes) {
  auto parsed = Parse(text, most_nodes);
  if (!parsed.ok() && Strip(text).starts_with('{')) {
    // Some JSON is not YAML: tabs as indentation, a character as two \u escapes.
    auto json = ReadJson(text, kDeepest - 1);
    if (json.ok()) parsed = std::vector<YamlDocument>{{.object = *std::move(json), .lines = {{"", 1}}}};
  }
  MUSTER_RETURN_IF_ERROR(parsed.status());
  std::vector<YamlDocument> documents;
  for (YamlDocument& document : *parsed) AddItems(std::move(document), documents);
  return documents;
}

}  // namespace muster::controller
