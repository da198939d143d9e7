// SPDX-License-Identifier: Apache-2.0
// Keys, from the bytes that terminals send.
#include <gtest/gtest.h>

#include "agent/live/terminal_keys.h"
#include "base/text.h"

namespace muster::agent {
namespace {

std::string NameOf(const Key& key) {
  switch (key.kind) {
    case KeyKind::kText:
      return key.text;
    case KeyKind::kEnter:
      return "Enter";
    case KeyKind::kEscape:
      return "Esc";
    case KeyKind::kBackspace:
      return "Back";
    case KeyKind::kUp:
      return "Up";
    case KeyKind::kDown:
      return "Down";
    case KeyKind::kLeft:
      return "Left";
    case KeyKind::kRight:
      return "Right";
    case KeyKind::kPageUp:
      return "PgUp";
    case KeyKind::kPageDown:
      return "PgDn";
    case KeyKind::kHome:
      return "Home";
    case KeyKind::kEnd:
      return "End";
    case KeyKind::kClear:
      return "Clear";
    case KeyKind::kInterrupt:
      return "^C";
    case KeyKind::kSuspend:
      return "^Z";
    case KeyKind::kRedraw:
      return "^L";
  }
  return "?";
}

std::string NamesOf(const std::vector<Key>& keys) {
  std::vector<std::string> names;
  for (const Key& key : keys) names.push_back(NameOf(key));
  return Join(names, " ");
}

const struct {
  std::string bytes, keys;
} kRows[] = {
    {"", ""},
    {"qS/", "q S /"},
    {"é中😀", "é 中 😀"},
    {"\r\n\x7f\x08\x03\x1a\x0c\x15", "Enter Enter Back Back ^C ^Z ^L Clear"},
    {"\x1b[A\x1b[B\x1b[C\x1b[D", "Up Down Right Left"},
    {"\x1bOA\x1bOB\x1bOC\x1bOD\x1bOM", "Up Down Right Left Enter"},  // application mode, keypad
    {"\x1b[H\x1b[F\x1bOH\x1bOF", "Home End Home End"},               // xterm
    {"\x1b[1~\x1b[4~\x1b[7~\x1b[8~", "Home End Home End"},           // Linux console, rxvt
    {"\x1b[5~\x1b[6~", "PgUp PgDn"},
    {"\x1b[1;5A\x1b[5;2~", "Up PgUp"},  // with Ctrl, with Shift
    {"\x1b[15~\x1bOP\x1b[[Aq", "q"},    // function keys
    {"\x1b[?1;2cx", "x"},               // an answer of the terminal
    {"\x1b[200~pasted\x1b[201~", "p a s t e d"},
    {"\x1b\x1b[A", "Esc Up"},
    {"\x1bq", "Esc q"},
    {"\x1b[1\x03", "^C"},  // broken off
    {"\x1b[1\x1b[A", "Up"},
    {"\xFF\xC3(\x80z", "( z"},
    {"\xE4\xB8q", "q"},
    {"\xE4\xC3\xA9", "é"},
    {"\xF5\x80", ""},
    {"\xC2\x9B"
     "A",
     "A"},  // CSI in one character is no key
    {std::string("\0\x01\x1f", 3), ""},
    {"\x1b[" + std::string(100000, '9') + "~q", "q"},
};

TEST(KeyReader, Rows) {
  for (const auto& row : kRows) {
    KeyReader reader;
    EXPECT_EQ(NamesOf(reader.Add(row.bytes)), row.keys) << row.bytes;
    EXPECT_FALSE(reader.waits());
  }
}

TEST(KeyReader, PiecesAreAsGoodAsTheWhole) {
  for (const auto& row : kRows) {
    KeyReader reader;
    std::vector<Key> keys;
    for (const char byte : row.bytes) {
      for (const Key& key : reader.Add(std::string_view(&byte, 1))) keys.push_back(key);
    }
    EXPECT_EQ(NamesOf(keys), row.keys) << row.bytes;
  }
}

TEST(KeyReader, EscapeAloneIsAKeyAfterAPause) {
  KeyReader reader;
  EXPECT_EQ(NamesOf(reader.Add("a\x1b")), "a");
  EXPECT_TRUE(reader.waits());
  EXPECT_EQ(NamesOf(reader.Flush()), "Esc");
  EXPECT_FALSE(reader.waits());
  EXPECT_EQ(NamesOf(reader.Flush()), "");
  EXPECT_EQ(NamesOf(reader.Add("\x1b[")), "");
  EXPECT_EQ(NamesOf(reader.Flush()), "");  // a sequence that was broken off
  EXPECT_EQ(NamesOf(reader.Add("A")), "A");
}

}  // namespace
}  // namespace muster::agent
