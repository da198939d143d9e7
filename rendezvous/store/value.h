// SPDX-License-Identifier: Apache-2.0
// The value of a key. A small value is a std::string. A large one may stay in the memory in which its request arrived,
// since copying a megabyte takes as long as receiving it.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "rendezvous/store/buffer.h"

namespace muster::store {

class Value {
 public:
  // Valid until the next change.
  std::string_view view() const { return large_ == nullptr ? std::string_view(text_) : large_->view(); }
  size_t size() const { return view().size(); }
  size_t capacity() const { return large_ == nullptr ? text_.capacity() : large_->bytes.capacity(); }

  // `from`, unless nullptr, is memory with `bytes` at its end. The value takes it if `bytes` have 64 KiB or more and
  // fill half of it; `from` gets the memory of the large value before, emptied. A small value frees that memory.
  void Assign(std::string_view bytes, Buffer* from = nullptr);
  void Append(std::string_view bytes);
  void Clear() { *this = Value(); }

 private:
  struct Large {
    Buffer bytes;
    size_t begin = 0;  // of the value; before it lies the rest of its request
    std::string_view view() const { return bytes.view().substr(begin); }
  };

  std::string text_;  // empty if there is a large value
  std::unique_ptr<Large> large_;
};

}  // namespace muster::store
