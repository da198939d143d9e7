// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/store/value.h"

namespace muster::store {
namespace {

constexpr size_t kKeep = 64 << 10;  // bytes; a value of this size or more may stay in its request's memory

}  // namespace

void Value::Assign(std::string_view bytes, Buffer* from) {
  if (from != nullptr && bytes.size() >= kKeep && bytes.size() >= from->capacity() / 2) {
    if (large_ == nullptr) large_ = std::make_unique<Large>();
    large_->bytes.swap(*from);
    large_->begin = large_->bytes.size() - bytes.size();
    from->Clear();
    text_ = std::string();
    return;
  }
  if (large_ != nullptr || (text_.capacity() > 4096 && bytes.size() < text_.capacity() / 2)) {
    std::string(bytes).swap(text_);  // a copy: `bytes` may lie in the large value
    large_ = nullptr;
  } else {
    text_.assign(bytes);
  }
}

void Value::Append(std::string_view bytes) {
  if (large_ == nullptr) {
    text_.append(bytes);
  } else {
    large_->bytes.Append(bytes);
  }
}

}  // namespace muster::store
