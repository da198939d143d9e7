// SPDX-License-Identifier: Apache-2.0
#include "agent/live/terminal_keys.h"

#include <optional>

#include "base/utf8.h"

namespace muster::agent {
namespace {

constexpr int kLargestNumber = 1000;

std::optional<KeyKind> KeyOfLetter(unsigned char letter) {
  switch (letter) {
    case 'A':
      return KeyKind::kUp;
    case 'B':
      return KeyKind::kDown;
    case 'C':
      return KeyKind::kRight;
    case 'D':
      return KeyKind::kLeft;
    case 'H':
      return KeyKind::kHome;
    case 'F':
      return KeyKind::kEnd;
    case 'M':  // of the keypad
      return KeyKind::kEnter;
    default:
      return std::nullopt;
  }
}

// ESC [ NUMBER ~
std::optional<KeyKind> KeyOfNumber(int number) {
  switch (number) {
    case 1:
    case 7:
      return KeyKind::kHome;
    case 4:
    case 8:
      return KeyKind::kEnd;
    case 5:
      return KeyKind::kPageUp;
    case 6:
      return KeyKind::kPageDown;
    default:
      return std::nullopt;
  }
}

std::optional<KeyKind> KeyOfControl(unsigned char byte) {
  switch (byte) {
    case '\r':
    case '\n':
      return KeyKind::kEnter;
    case 0x08:
    case 0x7F:
      return KeyKind::kBackspace;
    case 0x03:
      return KeyKind::kInterrupt;
    case 0x1A:
      return KeyKind::kSuspend;
    case 0x0C:
      return KeyKind::kRedraw;
    case 0x15:
      return KeyKind::kClear;
    default:
      return std::nullopt;
  }
}

void Append(std::optional<KeyKind> kind, std::vector<Key>* keys) {
  if (kind) keys->push_back({*kind, ""});
}

}  // namespace

std::vector<Key> KeyReader::Add(std::string_view bytes) {
  std::vector<Key> keys;
  for (const char byte : bytes) AddByte(static_cast<unsigned char>(byte), &keys);
  return keys;
}

std::vector<Key> KeyReader::Flush() {
  std::vector<Key> keys;
  if (stage_ == Stage::kEscape) keys.push_back({KeyKind::kEscape, ""});
  stage_ = Stage::kText;
  return keys;
}

void KeyReader::AddByte(unsigned char byte, std::vector<Key>* keys) {
  switch (stage_) {
    case Stage::kText:
      AddText(byte, keys);
      return;
    case Stage::kEscape:
      if (byte == '[') {
        stage_ = Stage::kControl;
        console_ = false;
        number_ = 0;
        first_ = true;
        return;
      }
      if (byte == 'O') {
        stage_ = Stage::kShift;
        return;
      }
      stage_ = Stage::kText;
      keys->push_back({KeyKind::kEscape, ""});
      AddText(byte, keys);
      return;
    case Stage::kControl:
      AddControl(byte, keys);
      return;
    case Stage::kShift:
      stage_ = Stage::kText;
      Append(KeyOfLetter(byte), keys);
      return;
  }
}

void KeyReader::AddControl(unsigned char byte, std::vector<Key>* keys) {
  if (console_) {
    stage_ = Stage::kText;
    return;
  }
  if (byte == '[' && first_ && number_ == 0) {
    console_ = true;
    return;
  }
  if (byte >= '0' && byte <= '9') {
    if (first_ && number_ < kLargestNumber) number_ = number_ * 10 + (byte - '0');
    return;
  }
  if (byte >= 0x20 && byte <= 0x3F) {
    first_ = false;
    return;
  }
  stage_ = Stage::kText;
  if (byte < 0x20 || byte > 0x7E) return AddText(byte, keys);  // the sequence was broken off
  Append(byte == '~' ? KeyOfNumber(number_) : KeyOfLetter(byte), keys);
}

void KeyReader::AddText(unsigned char byte, std::vector<Key>* keys) {
  if (byte < 0x80) character_.clear();  // it was broken off
  if (byte == 0x1B) {
    stage_ = Stage::kEscape;
    return;
  }
  if (byte < 0x20 || byte == 0x7F) return Append(KeyOfControl(byte), keys);
  character_ += static_cast<char>(byte);
  const Utf8Character character = FirstCharacter(character_);
  if (character.valid) {
    const bool control = character.code >= 0x80 && character.code < 0xA0;
    if (!control) keys->push_back({KeyKind::kText, character_});
    character_.clear();
    return;
  }
  const auto first = static_cast<unsigned char>(character_.front());
  if (character.size == character_.size() && first >= 0xC2 && first <= 0xF4) return;  // more may come
  const bool began_before = character_.size() > 1;
  character_.clear();
  if (began_before) AddText(byte, keys);  // the byte may begin a character
}

}  // namespace muster::agent
