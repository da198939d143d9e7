// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/store/buffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace muster::store {

Buffer::~Buffer() { std::free(data_); }

void Buffer::Reserve(size_t bytes) {
  if (capacity_ - size_ >= bytes) return;
  size_t capacity = std::max<size_t>(size_ + bytes, 256);
  char* moved = static_cast<char*>(std::realloc(data_, capacity));
  if (moved == nullptr) throw std::bad_alloc();
  data_ = moved;
  capacity_ = capacity;
}

void Buffer::Append(std::string_view bytes) {
  if (bytes.empty()) return;
  if (capacity_ - size_ < bytes.size()) Reserve(std::max(bytes.size(), size_));
  std::memcpy(data_ + size_, bytes.data(), bytes.size());
  size_ += bytes.size();
}

void Buffer::DropFront(size_t bytes) {
  std::memmove(data_, data_ + bytes, size_ - bytes);
  size_ -= bytes;
}

}  // namespace muster::store
