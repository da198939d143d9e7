// The value of a key. A small one is a text; a large one may stay in the memory in which its request came, since a copy
// of a megabyte takes as long as its receipt.
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
  // Lives until the next change.
  std::string_view view() const { return large_ == nullptr ? std::string_view(text_) : large_->view(); }
  size_t size() const { return view().size(); }
  size_t capacity() const { return large_ == nullptr ? text_.capacity() : large_->bytes.capacity(); }

  // A small value gives back the memory of the large one it replaces. `from`, unless nullptr, is memory that has
  // `bytes` at its end: where that is worth it the value keeps it, and leaves there that of the large value before it,
  // empty.
  void Assign(std::string_view bytes, Buffer* from = nullptr);
  void Append(std::string_view bytes);
  void Clear() { *this = Value(); }

 private:
  struct Large {
    Buffer bytes;
    size_t begin = 0;  // of the value; before it lies the rest of its request
    std::string_view view() const { return bytes.view().substr(begin); }
  };

  std::string text_;  // empty where there is a large one
  std::unique_ptr<Large> large_;
};

}  // namespace muster::store
