// SPDX-License-Identifier: Apache-2.0
#include "initializers/target/manifest.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "base/quoted.h"
#include "base/text.h"
#include "base/utf8.h"
#include "initializers/facts/digest.h"
#include "initializers/facts/entry_path.h"

namespace muster::initializers {
namespace {

constexpr int kSchema = 1;
constexpr int kDeepest = 64;  // nesting of unknown fields

void AppendText(std::string_view text, std::string* json) {
  *json += '"';
  while (!text.empty()) {
    const Utf8Character character = FirstCharacter(text);
    if (!character.valid) {
      *json += kReplacementCharacter;
    } else if (character.code < 0x20) {
      fmt::format_to(std::back_inserter(*json), "\\u{:04x}", character.code);
    } else {
      if (character.code == '"' || character.code == '\\') *json += '\\';
      *json += text.substr(0, character.size);
    }
    text.remove_prefix(character.size);
  }
  *json += '"';
}

void AppendField(std::string_view name, std::string_view text, std::string* json) {
  fmt::format_to(std::back_inserter(*json), "\"{}\":", name);
  AppendText(text, json);
}

// A field and the member for its value; monostate: the list of files.
template <class Owner>
struct Field {
  std::string_view name;
  std::variant<std::monostate, std::string Owner::*, uint64_t Owner::*, int64_t Owner::*, int Owner::*, bool Owner::*>
      into;
  bool may_miss = false;
};
using F = Field<ManifestFile>;
constexpr F kFileFields[] = {
    {"path", &ManifestFile::path},
    {"size", &ManifestFile::size},
    {"hash", &ManifestFile::hash},
    {"verified", &ManifestFile::verified},
    {"version", &ManifestFile::version},
    {"modified_ns", &ManifestFile::modified_ns},
    {"unpacked", &ManifestFile::unpacked, true},
    {"archive", &ManifestFile::archive, true},
};
using M = Field<Manifest>;
constexpr M kFields[] = {
    {"schema", &Manifest::schema},
    {"source", &Manifest::source},
    {"version", &Manifest::version},
    {"endpoint", &Manifest::endpoint},
    {"selection", &Manifest::selection},
    {"tool", &Manifest::tool},
    {"files", {}},
    {"completed_unix_ms", &Manifest::completed_unix_ms},
};

// Sets the fields of one object, each at most once.
template <class Owner>
class Fields {
 public:
  Fields(std::span<const Field<Owner>> fields, Owner* owner) : fields_(fields), owner_(owner) {}

  // Selects the field whose value comes next. Returns an error, or nullopt.
  std::optional<std::string> Next(std::string_view name) {
    at_ = static_cast<size_t>(
        std::find_if(fields_.begin(), fields_.end(), [&](const auto& field) { return field.name == name; }) -
        fields_.begin());
    if (!known()) return std::nullopt;
    if ((seen_ & uint32_t{1} << at_) != 0) return fmt::format("{} is there twice", name);
    seen_ |= uint32_t{1} << at_;
    return std::nullopt;
  }
  bool known() const { return at_ < fields_.size(); }
  std::string_view name() const { return fields_[at_].name; }
  bool wants_files() const { return known() && std::holds_alternative<std::monostate>(fields_[at_].into); }

  // False: the field has another type.
  template <typename Value>
  bool Set(Value value) {
    return std::visit([&](auto member) { return Put(member, std::move(value)); }, fields_[at_].into);
  }

  std::optional<std::string> Missing() const {
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (!fields_[i].may_miss && (seen_ & uint32_t{1} << i) == 0) return fmt::format("{} is missing", fields_[i].name);
    }
    return std::nullopt;
  }

 private:
  template <typename Value>
  bool Put(std::monostate, Value) {
    return false;
  }
  template <typename Member, typename Value>
  bool Put(Member Owner::*member, Value value) {
    constexpr bool kNumber = std::is_integral_v<Member> && !std::is_same_v<Member, bool>;
    constexpr bool kNumbers = kNumber && std::is_integral_v<Value> && !std::is_same_v<Value, bool>;
    if constexpr (kNumbers) {
      if (!std::in_range<Member>(value)) return false;
      owner_->*member = static_cast<Member>(value);
      return true;
    } else if constexpr (std::is_same_v<Member, Value>) {
      owner_->*member = std::move(value);
      return true;
    } else {
      return false;
    }
  }

  std::span<const Field<Owner>> fields_;
  Owner* owner_;
  size_t at_ = 0;
  uint32_t seen_ = 0;
};

std::optional<std::string> FaultOf(const ManifestFile& file, const ManifestFiles& before) {
  if (const Status path = CheckEntryPath(file.path); !path.ok()) return std::string(Message(path));
  if (file.path.ends_with('/')) {
    if (!file.hash.empty() || file.size != 0) return "it is a folder, which has no size and no hash";
  } else if (!file.hash.empty()) {
    const auto hash = ParseExpectation(file.hash);
    if (!hash.ok()) return fmt::format("hash: {}", Message(hash.status()));
  }
  if (!before.empty() && before.PathOf(before.size() - 1) >= file.path)
    return "files are sorted by path, and each is there once";
  return std::nullopt;
}

// A SAX handler for nlohmann's parser: no document is built, which would take many times the memory of the text.
class Reader {
 public:
  using Json = nlohmann::json;

  Manifest manifest;
  std::string fault;

  bool null() { return Value(nullptr); }
  bool boolean(bool value) { return Value(value); }
  bool number_integer(Json::number_integer_t value) { return Value(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return Value(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return Value(value); }
  bool string(std::string& value) { return Value(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }  // JSON has no binary values

  bool start_object(size_t) {
    if (skipped_ > 0) return Deeper();
    switch (place_) {
      case Place::kBefore:
        place_ = Place::kTop;
        return true;
      case Place::kFiles:
        place_ = Place::kFile;
        file_ = {};
        file_fields_ = Fields<ManifestFile>(kFileFields, &file_);
        return true;
      case Place::kTop:
        return fields_.known() ? WrongKind() : Deeper();
      case Place::kFile:
        return file_fields_.known() ? WrongKind() : Deeper();
    }
    return false;
  }
  bool key(std::string& name) {
    if (skipped_ > 0) return true;
    const auto wrong = place_ == Place::kFile ? file_fields_.Next(name) : fields_.Next(name);
    return !wrong || Fail(*wrong);
  }
  bool end_object() {
    if (skipped_ > 0) return --skipped_, true;
    if (place_ == Place::kTop) {
      const auto missing = fields_.Missing();
      return !missing || Fail(*missing);
    }
    auto wrong = file_fields_.Missing();
    if (!wrong) wrong = FaultOf(file_, manifest.files);
    if (wrong) return Fail(*wrong);
    manifest.files.push_back(file_);
    place_ = Place::kFiles;
    return true;
  }
  bool start_array(size_t) {
    if (skipped_ > 0) return Deeper();
    if (place_ == Place::kTop && fields_.wants_files()) {
      place_ = Place::kFiles;
      return true;
    }
    if (place_ == Place::kTop && !fields_.known()) return Deeper();
    if (place_ == Place::kFile && !file_fields_.known()) return Deeper();
    return WrongKind();
  }
  bool end_array() {
    if (skipped_ > 0) return --skipped_, true;
    place_ = Place::kTop;
    return true;
  }
  bool parse_error(size_t position, const std::string& last, const nlohmann::detail::exception&) {
    fault = fmt::format("byte {}: it is not JSON near {}", position, Quoted(last, 40));
    return false;
  }

 private:
  enum class Place { kBefore, kTop, kFiles, kFile };

  template <typename T>
  bool Value(T value) {
    if (skipped_ > 0) return true;
    if (place_ == Place::kFile) return !file_fields_.known() || file_fields_.Set(std::move(value)) || WrongKind();
    if (place_ != Place::kTop) return WrongKind();
    if (!fields_.known()) return true;
    if (!fields_.Set(std::move(value))) return WrongKind();
    if (manifest.schema == kSchema) return true;
    return Fail(
        fmt::format("it has schema {}, and this Muster knows {}; use the one that wrote it", manifest.schema, kSchema));
  }
  bool Deeper() { return ++skipped_ <= kDeepest || Fail(fmt::format("something is nested deeper than {}", kDeepest)); }
  bool WrongKind() {
    if (place_ == Place::kBefore) return Fail("it is not a JSON object");
    if (place_ == Place::kFiles) return Fail("it is not a JSON object");
    return Fail(fmt::format("{} is of another kind", place_ == Place::kFile ? file_fields_.name() : fields_.name()));
  }
  bool Fail(std::string_view what) {
    const bool in_file = place_ == Place::kFiles || place_ == Place::kFile;
    fault = in_file ? fmt::format("file {}: {}", manifest.files.size() + 1, what) : std::string(what);
    return false;
  }

  Place place_ = Place::kBefore;
  int skipped_ = 0;  // depth inside an unknown field
  Fields<Manifest> fields_{kFields, &manifest};
  ManifestFile file_;
  Fields<ManifestFile> file_fields_{kFileFields, &file_};
};

Status Bad(std::string_view what) {
  return absl::InvalidArgumentError(
      fmt::format("the manifest: {}; remove {}/{} to start anew", what, kOwnFolder, kManifestName));
}

}  // namespace

std::string WriteManifest(const Manifest& manifest) {
  std::string text;
  (void)WriteManifest(manifest, [&text](std::string_view piece) {
    text += piece;
    return absl::OkStatus();
  });
  return text;
}

Status WriteManifest(const Manifest& manifest, const std::function<Status(std::string_view)>& piece) {
  constexpr size_t kPiece = size_t{64} << 10;
  if (!manifest.files.sorted()) {
    Manifest sorted = manifest;
    sorted.files.Sort();
    return WriteManifest(sorted, piece);
  }
  std::string json;
  const auto out = std::back_inserter(json);
  fmt::format_to(out, "{{\"schema\":{},\n", manifest.schema);
  const std::pair<std::string_view, const std::string&> texts[] = {{"source", manifest.source},
                                                                   {"version", manifest.version},
                                                                   {"endpoint", manifest.endpoint},
                                                                   {"selection", manifest.selection},
                                                                   {"tool", manifest.tool}};
  for (const auto& [name, text] : texts) {
    AppendField(name, text, &json);
    json += ",\n";
  }
  fmt::format_to(out, "\"completed_unix_ms\":{},\n\"files\":[", manifest.completed_unix_ms);
  const char* before = "\n{";
  for (const ManifestFile& file : manifest.files) {
    json += std::exchange(before, ",\n{");
    AppendField("path", file.path, &json);
    fmt::format_to(out, ",\"size\":{},", file.size);
    AppendField("hash", file.hash, &json);
    fmt::format_to(out, ",\"verified\":{},", file.verified);
    AppendField("version", file.version, &json);
    fmt::format_to(out, ",\"modified_ns\":{}", file.modified_ns);
    if (file.unpacked) json += ",\"unpacked\":true";
    if (!file.archive.empty()) {
      json += ',';
      AppendField("archive", file.archive, &json);
    }
    json += '}';
    if (json.size() < kPiece) continue;
    MUSTER_RETURN_IF_ERROR(piece(json));
    json.clear();
  }
  json += "\n]}\n";
  return piece(json);
}

StatusOr<Manifest> ReadManifest(std::string_view text) {
  if (text.size() > kLongestManifest) {
    return Bad(fmt::format("it has {} bytes, more than {}", text.size(), kLongestManifest));
  }
  Reader reader;
  if (!nlohmann::json::sax_parse(text, &reader)) return Bad(reader.fault);
  return std::move(reader.manifest);
}

StatusOr<Manifest> ReadManifest(FILE* file) {
  Reader reader;
  if (!nlohmann::json::sax_parse(file, &reader)) return Bad(reader.fault);
  return std::move(reader.manifest);
}

}  // namespace muster::initializers
