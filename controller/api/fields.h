// SPDX-License-Identifier: Apache-2.0
// Reads the fields of a Kubernetes object. Pure; untrusted input.
//
// The first fault is kept as a complaint, with the whole path and the value:
// "spec.trainer.numNodes: 'four' is not a whole number". A null field counts as absent, as in Kubernetes.
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

// `value` for a message: 'text', 5, true, a list, an object.
std::string Shown(const Json& value);

inline constexpr size_t kLongestLabel = 63;
// Whether `name` is a DNS label (RFC 1035), as a Service's name must be: a-z, 0-9, '-', a letter first, no '-' last.
bool IsLabel(std::string_view name);
// A DNS label (RFC 1123): a-z, 0-9 and '-', but no '-' at an end. Such a name is safe as the name of a folder.
bool IsDnsLabel(std::string_view name);
// Such labels of any length with points between, 253 characters at most.
bool IsDnsName(std::string_view name);

// Fields whose names the reader of their object does not know, most often misspelt; an API server drops them. By path,
// with the known name that is nearest to the field's; empty: none is near.
using UnknownFields = std::map<std::string, std::string>;

// Keeps the first complaint about an object.
class Complaints {
 public:
  // Fills in `unknown` unless it is null.
  explicit Complaints(UnknownFields* unknown = nullptr) : unknown_(unknown) {}

  void Wrong(std::string_view path, std::string_view what);                          // "path: what"
  void Wrong(std::string_view path, const Json& value, std::string_view what);       // "path: 'value' what"
  void Wrong(std::string_view path, std::string_view value, std::string_view what);  // "path: 'value' what"
  const Status& status() const { return status_; }                                   // InvalidArgument
  bool ok() const { return status_.ok(); }
  UnknownFields* unknown() const { return unknown_; }

 private:
  Status status_;
  UnknownFields* const unknown_;
};

// A view of one object, or of no object: then every field is absent. The JSON must outlive it.
class Fields {
 public:
  // Complains if `object` is neither null nor an object.
  Fields(const Json* object, std::string path, Complaints* complaints);

  explicit operator bool() const { return object_ != nullptr; }
  const std::string& path() const { return path_; }
  std::string PathOf(std::string_view name) const { return controller::PathOf(path_, name); }
  Complaints* complaints() const { return complaints_; }

  const Json* Whole() const { return object_; }  // null: no object
  const Json* Find(const char* name) const;      // null: absent
  Json Copy(const char* name) const;             // null: absent

  std::string Text(const char* name);      // empty: absent
  std::string NeedText(const char* name);  // complains if the field is absent or empty
  bool Flag(const char* name, bool otherwise);
  // A number without a fraction: 2.0 counts as 2.
  std::optional<int64_t> Number(const char* name, int64_t least, int64_t most = std::numeric_limits<int64_t>::max());
  std::optional<int> Int(const char* name, int least, int most = std::numeric_limits<int>::max());
  std::map<std::string, std::string> TextMap(const char* name);
  std::optional<std::vector<std::string>> Texts(const char* name);
  // One of `words`; empty: absent.
  std::string Word(const char* name, const std::vector<std::string_view>& words);

  Fields Object(const char* name);                // of no object if the field is absent
  std::vector<Fields> Objects(const char* name);  // of a list

  // Call it once the object has been read by this view. Unknown fields are those that it was not asked for and whose
  // names are not in `others`, with spaces between them. The path of one that `inner` was asked for says: it belongs
  // there.
  void NoOthers(std::string_view others = "", const Fields* inner = nullptr) const;

  void Wrong(const char* name, std::string_view what) { complaints_->Wrong(PathOf(name), what); }
  void Wrong(const char* name, std::string_view value, std::string_view what) {
    complaints_->Wrong(PathOf(name), value, what);
  }

 private:
  const Json* object_;
  std::string path_;
  Complaints* complaints_;
  mutable std::vector<std::string> asked_;  // names, if they are needed for unknown fields
};

// {labels, annotations} of a template's metadata, without those that are empty; null: both are empty.
Json LabelsAndAnnotations(Fields metadata);

// nullopt: `value` is not a whole number, does not fit, or is a double beyond 2^53 (not exact).
std::optional<int64_t> WholeNumber(const Json& value);

}  // namespace muster::controller
