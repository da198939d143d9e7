// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/store/commands.h"

#include <map>

namespace muster::store {
namespace {

constexpr size_t kTail = 32 << 10;  // bytes; a value of this size or more is sent without a copy

const char* MultiGet(const Request& request, const KeySpace& keys, Output* output) {
  size_t total = 0;
  for (std::string_view key : request.args) {
    total += 8 + keys.Get(key).value_or("").size();
    if (total > kMaxAnswer) return "the answer of MULTI_GET is too long";
  }
  output->bytes.reserve(output->bytes.size() + total);
  for (std::string_view key : request.args) {
    PutString(&output->bytes, keys.Get(key).value_or(""));
  }
  return "";
}

const char* ListKeys(const KeySpace& keys, Output* output) {
  size_t total = 8;
  keys.ForEachKey([&](std::string_view key) { total += 8 + key.size(); });
  if (total > kMaxAnswer) return "the answer of LIST_KEYS is too long";
  output->bytes.reserve(output->bytes.size() + total);
  PutNumber<int64_t>(&output->bytes, keys.size());
  keys.ForEachKey([&](std::string_view key) { PutString(&output->bytes, key); });
  return "";
}

const char* Run(Request* request, WaiterId id, KeySpace* keys, Output* output) {
  const auto& args = request->args;
  std::string* out = &output->bytes;
  Woken* woken = &output->woken;
  auto byte = [out](uint8_t value) { out->push_back(static_cast<char>(value)); };
  switch (request->op) {
    case Op::kValidate:
      break;
    case Op::kSet:
      keys->Set(args[0], args[1], woken, request->bytes.size() > 0 ? &request->bytes : nullptr);
      break;
    case Op::kCompareSet:
      PutString(out, keys->CompareSet(args[0], args[1], args[2], woken));
      break;
    case Op::kGet: {
      const std::string_view value = keys->Get(args[0]).value_or("");
      if (value.size() >= kTail) {
        PutNumber<uint64_t>(out, value.size());
        output->tail = value;
      } else {
        PutString(out, value);
      }
      break;
    }
    case Op::kAdd: {
      std::optional<int64_t> sum = keys->Add(args[0], request->number, woken);
      if (!sum) return "ADD to a value that is not a number";
      PutNumber(out, *sum);
      break;
    }
    case Op::kCheck:
      byte(keys->Check(args) ? kReady : kNotReady);
      break;
    case Op::kWait:
      if (keys->Wait(id, args)) byte(kStopWaiting);
      break;
    case Op::kGetNumKeys:
      PutNumber<int64_t>(out, keys->size());
      break;
    case Op::kDeleteKey:
      PutNumber<int64_t>(out, keys->Delete(args[0]) ? 1 : 0);
      break;
    case Op::kAppend:
      if (!keys->Append(args[0], args[1], woken)) return "APPEND makes the value too long";
      break;
    case Op::kMultiGet:
      return MultiGet(*request, *keys, output);
    case Op::kMultiSet:
      for (size_t i = 0; i + 1 < args.size(); i += 2) keys->Set(args[i], args[i + 1], woken);
      break;
    case Op::kCancelWait:
      keys->Forget(id);
      byte(kWaitCanceled);
      break;
    case Op::kPing:
      PutNumber(out, static_cast<uint32_t>(request->number));
      break;
    case Op::kQueuePush:
      keys->QueuePush(args[0], args[1], woken);
      break;
    case Op::kQueuePop: {
      PutNumber<int64_t>(out, keys->QueueLength(args[0]));
      if (std::optional<std::string> value = keys->QueuePop(args[0])) PutString(out, *value);
      break;
    }
    case Op::kQueueLen:
      PutNumber<int64_t>(out, keys->QueueLength(args[0]));
      break;
    case Op::kListKeys:
      return ListKeys(*keys, output);
    case Op::kBarrier:
      switch (keys->Barrier(id, args[0], request->number, woken)) {
        case KeySpace::Arrival::kPass:
          byte(kStopWaiting);
          break;
        case KeySpace::Arrival::kWait:
          break;
        case KeySpace::Arrival::kGarbage:
          return "BARRIER on a value that is not a number";
      }
      break;
    case Op::kWatchKey:
      if (!keys->Watch(id, args[0])) return "too many keys watched";
      byte(kCallbackRegistered);
      break;
  }
  return "";
}

// The request may change the keys args[0], args[2], ... before this index.
size_t Changes(const Request& request) {
  switch (request.op) {
    case Op::kSet:
    case Op::kCompareSet:
    case Op::kAdd:
    case Op::kDeleteKey:
    case Op::kAppend:
    case Op::kBarrier:
      return 1;
    case Op::kMultiSet:
      return request.args.size();
    case Op::kValidate:
    case Op::kGet:
    case Op::kCheck:
    case Op::kWait:
    case Op::kGetNumKeys:
    case Op::kMultiGet:
    case Op::kCancelWait:
    case Op::kPing:
    case Op::kQueuePush:
    case Op::kQueuePop:
    case Op::kQueueLen:
    case Op::kListKeys:
    case Op::kWatchKey:
      break;
  }
  return 0;
}

using MaybeText = std::optional<std::string_view>;

void NotifyWatchers(const std::set<WaiterId>& watchers, std::string_view key, MaybeText before, MaybeText after,
                    Output* output) {
  std::string bytes(1, static_cast<char>(!after ? kKeyDeleted : !before ? kKeyCreated : kKeyUpdated));
  PutString(&bytes, key);
  PutString(&bytes, before.value_or(""));
  PutString(&bytes, after.value_or(""));
  for (WaiterId watcher : watchers) output->events.push_back({watcher, bytes});
}

}  // namespace

const char* Execute(Request* request, WaiterId id, KeySpace* keys, Output* output) {
  if (!keys->HasWatchers()) return Run(request, id, keys, output);
  const auto& args = request->args;
  std::map<std::string, std::optional<std::string>, std::less<>> watched;  // by key: the value before
  for (size_t i = 0; i < Changes(*request); i += 2) {
    if (keys->Watchers(args[i]) == nullptr || watched.contains(args[i])) continue;
    const MaybeText value = keys->Get(args[i]);
    if (value && request->op == Op::kCompareSet && *value != args[1]) continue;  // no change
    watched.emplace(args[i], value);
  }
  const char* why = Run(request, id, keys, output);
  for (const auto& [key, before] : watched) {
    const MaybeText after = keys->Get(key);
    if (before || after) NotifyWatchers(*keys->Watchers(key), key, before, after, output);
  }
  return why;
}

}  // namespace muster::store
