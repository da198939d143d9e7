// SPDX-License-Identifier: Apache-2.0
// The keys that a person presses, from the bytes that the terminal sends. Pure; bounded memory. Not thread-safe.
//
// Arrows and their neighbours come as sequences that begin with ESC, in the forms of xterm, rxvt and the Linux console.
// Unknown sequences, whatever their length, and bytes that are no UTF-8 are no keys. ESC alone is a key, too: if
// nothing follows it within kEscapePause, Flush() gives it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace muster::agent {

enum class KeyKind {
  kText,  // a character
  kEnter,
  kEscape,
  kBackspace,
  kUp,
  kDown,
  kLeft,
  kRight,
  kPageUp,
  kPageDown,
  kHome,
  kEnd,
  kClear,      // Ctrl-U
  kInterrupt,  // Ctrl-C
  kSuspend,    // Ctrl-Z
  kRedraw,     // Ctrl-L
};

struct Key {
  KeyKind kind = KeyKind::kText;
  std::string text;  // of kText: one character, UTF-8, no control character
  bool operator==(const Key&) const = default;
};

class KeyReader {
 public:
  static constexpr Duration kEscapePause = std::chrono::milliseconds(50);

  std::vector<Key> Add(std::string_view bytes);
  // True while the beginning of a sequence is held.
  bool waits() const { return stage_ != Stage::kText; }
  // What is held is all that comes.
  std::vector<Key> Flush();

 private:
  enum class Stage { kText, kEscape, kControl, kShift };  // after nothing, ESC, ESC [, ESC O

  void AddByte(unsigned char byte, std::vector<Key>* keys);
  void AddText(unsigned char byte, std::vector<Key>* keys);
  void AddControl(unsigned char byte, std::vector<Key>* keys);

  Stage stage_ = Stage::kText;
  bool console_ = false;   // ESC [ [: the Linux console's function keys, of which one more byte comes
  int number_ = 0;         // the first of a control sequence
  bool first_ = true;      // that number is not ended
  std::string character_;  // the beginning of a character, at most 3 bytes
};

}  // namespace muster::agent
