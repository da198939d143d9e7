// Reading the fields of a Kubernetes object that somebody else wrote. Pure; outside bytes.
//
// Of all that is wrong, the first complaint is kept, with the whole path and the value:
// "spec.trainer.numNodes: 'four' is no whole number". Absent and null are the same, as in Kubernetes.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

// "spec" and "trainer" give "spec.trainer", "" and "spec" give "spec", "env" and 0 give "env[0]".
std::string PathOf(std::string_view parent, std::string_view name);
std::string PathOf(std::string_view parent, size_t index);

// A value in a message: 'text', 5, true, "a list", "an object".
std::string Shown(const Json& value);

inline constexpr size_t kLongestLabel = 63;
// A DNS label as names of Services are (RFC 1035): a-z, 0-9 and '-', a letter first and no '-' last.
bool IsLabel(std::string_view name);

// The first complaint about an object.
class Complaints {
 public:
  void Wrong(std::string_view path, std::string_view what);                          // "path: what"
  void Wrong(std::string_view path, const Json& value, std::string_view what);       // "path: 'value' what"
  void Wrong(std::string_view path, std::string_view value, std::string_view what);  // "path: 'value' what"
  const Status& status() const { return status_; }                                   // InvalidArgument
  bool ok() const { return status_.ok(); }

 private:
  Status status_;
};

// One object, or nothing: of nothing every field is absent. It points into the JSON, which must outlive it.
class Fields {
 public:
  // Complains where `object` is neither null nor an object.
  Fields(const Json* object, std::string path, Complaints* complaints);

  explicit operator bool() const { return object_ != nullptr; }
  const std::string& path() const { return path_; }
  std::string PathOf(std::string_view name) const { return controller::PathOf(path_, name); }
  Complaints* complaints() const { return complaints_; }

  const Json* Whole() const { return object_; }  // null: nothing
  const Json* Find(const char* name) const;      // null: absent
  Json Copy(const char* name) const;             // null: absent

  std::string Text(const char* name);      // empty: absent
  std::string NeedText(const char* name);  // complains where it is absent or empty
  bool Flag(const char* name, bool otherwise);
  // A number without a fraction: 2.0 counts as 2.
  std::optional<int64_t> Number(const char* name, int64_t least, int64_t most = std::numeric_limits<int64_t>::max());
  std::optional<int> Int(const char* name, int least, int most = std::numeric_limits<int>::max());
  std::map<std::string, std::string> TextMap(const char* name);
  std::optional<std::vector<std::string>> Texts(const char* name);
  // One of `words`; empty where it is absent.
  std::string Word(const char* name, const std::vector<std::string_view>& words);

  Fields Object(const char* name);  // of nothing where it is absent
  // Each object of a list of objects.
  std::vector<Fields> Objects(const char* name);

  void Wrong(const char* name, std::string_view what) { complaints_->Wrong(PathOf(name), what); }
  void Wrong(const char* name, std::string_view value, std::string_view what) {
    complaints_->Wrong(PathOf(name), value, what);
  }

 private:
  const Json* object_;
  std::string path_;
  Complaints* complaints_;
};

// {labels, annotations} of a template's metadata: each where it has texts, else null.
Json LabelsAndAnnotations(Fields metadata);

// The number that `value` is, where it is a whole one that fits.
std::optional<int64_t> WholeNumber(const Json& value);

}  // namespace muster::controller
