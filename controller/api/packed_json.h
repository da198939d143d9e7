// SPDX-License-Identifier: Apache-2.0
// A JSON value that is kept as text, since a parsed one takes about ten times the memory. Copies share the text.
#pragma once

#include <memory>
#include <string>

#include "base/json_fields.h"

namespace muster::controller {

class PackedJson {
 public:
  PackedJson() = default;  // null
  explicit PackedJson(const Json& value) : text_(std::make_shared<const std::string>(WriteJson(value))) {}

  bool is_null() const { return text_ == nullptr; }
  size_t bytes() const { return is_null() ? 0 : text_->size(); }
  bool Shares(const PackedJson& other) const { return text_ == other.text_; }
  bool operator==(const PackedJson& other) const {
    return Shares(other) || (text_ != nullptr && other.text_ != nullptr && *text_ == *other.text_);
  }
  Json Unpack() const { return is_null() ? Json() : Json::parse(*text_); }

 private:
  std::shared_ptr<const std::string> text_;
};

}  // namespace muster::controller
