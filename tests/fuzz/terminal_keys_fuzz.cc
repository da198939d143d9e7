// SPDX-License-Identifier: Apache-2.0
// libFuzzer: what a terminal sends, as keys; and the output of a worker, as text for a terminal.
#include "agent/live/terminal_keys.h"
#include "agent/live/terminal_text.h"
#include "base/utf8.h"
#include "tests/fuzz/input.h"

namespace {

using muster::agent::Key;
using muster::agent::KeyKind;

// Valid UTF-8 without a control character.
bool IsHarmless(std::string_view text) {
  while (!text.empty()) {
    const muster::Utf8Character character = muster::FirstCharacter(text);
    const bool control = character.code < 0x20 || (character.code >= 0x7F && character.code < 0xA0);
    if (!character.valid || control) return false;
    text.remove_prefix(character.size);
  }
  return true;
}

void ReadKeys(std::string_view text) {
  muster::agent::KeyReader whole, pieces;
  std::vector<Key> keys = whole.Add(text), again;
  for (const char byte : text) {
    for (Key& key : pieces.Add(std::string_view(&byte, 1))) again.push_back(std::move(key));
  }
  Must(keys == again);
  Must(whole.waits() == pieces.waits());
  Must(keys.size() <= text.size());
  for (const Key& key : keys) Must((key.kind == KeyKind::kText) == !key.text.empty() && IsHarmless(key.text));
  Must(whole.Flush().size() <= 1);
  Must(!whole.waits());
}

void ShowText(std::string_view text, size_t columns) {
  const muster::agent::ShownText shown = muster::agent::Cut(text, columns);
  Must(shown.columns <= columns && IsHarmless(shown.text));
  Must(muster::agent::Shown(shown.text, columns).columns == shown.columns);
  Must(muster::agent::InAscii(shown.text).size() == shown.columns);
  for (const std::string& line : muster::agent::Wrapped(text, columns, 100)) Must(IsHarmless(line));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ChosenInput input = Choose(data, size);
  ReadKeys(input.text);
  ShowText(input.text, input.choice);
  return 0;
}
