// SPDX-License-Identifier: Apache-2.0
// A growing array of bytes, not initialised. It grows by realloc, so a large one moves without a copy.
//
// Not thread-safe. Throws std::bad_alloc, which ends the program, if there is no memory: the caller bounds the sizes.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

namespace muster::store {

class Buffer {
 public:
  Buffer() = default;
  ~Buffer();
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer taken(std::move(other));
    swap(taken);
    return *this;
  }

  char* data() { return data_; }
  const char* data() const { return data_; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  std::string_view view() const { return {data_, size_}; }
  void Append(std::string_view bytes);
  // Makes room for `bytes` after size(), no more (but 256 bytes in all). Append at least doubles the size.
  void Reserve(size_t bytes);
  std::span<char> Room() { return {data_ + size_, capacity_ - size_}; }
  void Commit(size_t bytes) { size_ += bytes; }
  void DropFront(size_t bytes);
  void Clear() { size_ = 0; }  // the memory stays
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace muster::store
