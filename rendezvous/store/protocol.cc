// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/store/protocol.h"

#include <algorithm>

namespace muster::store {
namespace {

// Fields of each op: k key, v value, i i64, u u32, K counted keys, P counted pairs (always last).
constexpr const char* kLayouts[kOps] = {"u", "kv", "kvv", "k", "ki", "K", "K", "", "k",  "kv",
                                        "K", "P",  "",    "u", "kv", "k", "k", "", "ki", "k"};
constexpr size_t kWorthDirect = 16 << 10;

template <typename T>
T Load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

}  // namespace

Parser::Result Parser::Next(std::string_view* input, Request* request) {
  if (partial_ == nullptr) {
    if (input->empty()) return Result::kNeedMore;
    Scan scan;
    Result result = Parse(*input, &scan, request);
    if (result == Result::kRequest) input->remove_prefix(scan.at);
    if (result != Result::kNeedMore) return result;
    partial_ = std::make_unique<Partial>();
    partial_->bytes.Append(*input);
    partial_->scan = scan;
    *input = {};
    return Result::kNeedMore;
  }
  Partial& partial = *partial_;
  if (partial.begin == partial.bytes.size() && partial.scan.at == 1) {  // all kept input is processed
    partial_.reset();
    return Next(input, request);
  }
  if (partial.bytes.size() - partial.begin < partial.scan.need || partial.begin == 0) {
    if (partial.begin > 0) partial.bytes.DropFront(partial.begin);
    partial.begin = 0;
    partial.bytes.Append(*input);
    *input = {};
  }
  Result result = Parse(partial.bytes.view().substr(partial.begin), &partial.scan, request);
  if (result == Result::kRequest) {
    if (partial.begin == 0 && partial.scan.at == partial.bytes.size() && partial.scan.at >= kWorthDirect) {
      request->bytes = std::move(partial.bytes);
      partial_.reset();
      return result;
    }
    partial.begin += partial.scan.at;
    partial.scan = Scan();
  } else if (result == Result::kNeedMore && !input->empty()) {
    return Next(input, request);
  }
  return result;
}

void Parser::Keep(std::string_view input) {
  if (input.empty()) return;
  if (partial_ == nullptr) partial_ = std::make_unique<Partial>();
  partial_->bytes.Append(input);
}

std::span<char> Parser::Tail(Buffer* spare) {
  if (partial_ == nullptr || partial_->begin != 0) return {};
  size_t have = partial_->bytes.size();
  const Scan& scan = partial_->scan;
  if (scan.need <= have || scan.need - scan.at < kWorthDirect) return {};
  size_t missing = scan.need - have;
  // At most as much memory again as bytes have arrived (or 64 KiB), so that a false length costs little.
  Buffer& bytes = partial_->bytes;
  if (bytes.Room().empty() && spare->capacity() > have) {
    spare->Clear();
    spare->Append(bytes.view());
    bytes.swap(*spare);
    *spare = Buffer();
  }
  if (bytes.Room().empty()) bytes.Reserve(std::min(missing, std::max(have, size_t{64} << 10)));
  std::span<char> room = bytes.Room();
  return room.first(std::min(room.size(), missing));
}

void Parser::Commit(size_t bytes) { partial_->bytes.Commit(bytes); }

Parser::Result Parser::Parse(std::string_view bytes, Scan* scan, Request* request) {
  if (bytes.empty()) return Result::kNeedMore;
  uint8_t code = static_cast<uint8_t>(bytes[0]);
  if (generation_ == Generation::kUnknown) {
    if (code == 'P' || code == 0x16) return Result::kForeign;
    if (code == 0) {  // VALIDATE, or an old SET whose key would be gigabytes long
      char magic[5] = {0};
      std::memcpy(magic + 1, &kMagic, 4);
      size_t known = std::min<size_t>(bytes.size(), 5);
      bool same = std::memcmp(bytes.data(), magic, known) == 0;
      if (same && known < 5) {
        scan->need = 5;
        return Result::kNeedMore;
      }
      generation_ = same ? Generation::kC : Generation::kOld;
    } else {
      generation_ = Generation::kOld;
    }
  }
  Op op = static_cast<Op>(code);
  Found found = Found::kBad;
  bool walked = false;
  if (generation_ == Generation::kC) {
    if (code > static_cast<uint8_t>(Op::kBarrier)) {
      request->why = "unknown opcode";
      return Result::kViolation;
    }
  } else {
    walked = MapOldOp(code, bytes, scan, &op, &found, &request->why);
    if (walked && found == Found::kBad) return Result::kViolation;
  }
  if (!walked) found = Walk(op, bytes, scan, &request->why);
  if (found == Found::kBad) return Result::kViolation;
  if (found == Found::kPart) return Result::kNeedMore;
  Slice(op, bytes, request);
  if (op == Op::kValidate && static_cast<uint32_t>(request->number) != kMagic) {
    request->why = "VALIDATE with another number";
    return Result::kViolation;
  }
  first_ = false;
  return Result::kRequest;
}

// Maps the opcode of an older client. True: it has walked the fields itself, or the opcode is unknown.
bool Parser::MapOldOp(uint8_t code, std::string_view bytes, Scan* scan, Op* op, Found* found, const char** why) {
  if (code <= 6) {
    *op = static_cast<Op>(code + 1);
    return false;
  }
  if (code > 11 || (generation_ == Generation::kA && code > 8)) {
    *why = "unknown opcode of an old client";
    return true;
  }
  if (generation_ == Generation::kOld) {
    if (code == 7) generation_ = first_ ? Generation::kA : Generation::kB;
    if (code >= 9) generation_ = Generation::kB;
  }
  if (generation_ == Generation::kOld) {  // opcode 8: DELETE_KEY ends after the key, APPEND goes on
    *op = Op::kDeleteKey;
    *found = Walk(*op, bytes, scan, why);
    if (*found != Found::kWhole) return true;
    generation_ = bytes.size() == scan->at ? Generation::kA : Generation::kB;
    if (generation_ == Generation::kA) return true;
  }
  if (generation_ == Generation::kA) {
    *op = code == 7 ? Op::kWatchKey : Op::kDeleteKey;
  } else {
    *op = static_cast<Op>(code + 1);
  }
  return false;
}

Parser::Found Parser::Walk(Op op, std::string_view bytes, Scan* scan, const char** why) {
  const char* layout = kLayouts[static_cast<int>(op)];
  auto lacks = [&](uint64_t more) {
    scan->need = scan->at + more;
    return bytes.size() < scan->need;
  };
  while (layout[scan->field] != 0) {
    char kind = layout[scan->field];
    if (kind == 'i' || kind == 'u') {
      size_t width = kind == 'i' ? 8 : 4;
      if (lacks(width)) return Found::kPart;
      scan->at += width;
      ++scan->field;
      continue;
    }
    if (kind == 'K' || kind == 'P') {
      if (!scan->counted) {
        if (lacks(8)) return Found::kPart;
        uint64_t count = Load<uint64_t>(bytes.data() + scan->at);
        if (count > kMaxKeys) {
          *why = "too many keys in one request";
          return Found::kBad;
        }
        scan->at += 8;
        scan->left = static_cast<uint32_t>(kind == 'P' ? 2 * count : count);
        scan->counted = true;
      }
      if (scan->left == 0) {
        ++scan->field;
        continue;
      }
      // The key of a pair comes first: then an even number of strings is left.
      kind = kind == 'P' && scan->left % 2 == 1 ? 'v' : 'k';
    }
    if (lacks(8)) return Found::kPart;
    uint64_t length = Load<uint64_t>(bytes.data() + scan->at);
    if (length > (kind == 'k' ? kMaxKey : kMaxValue)) {
      *why = kind == 'k' ? "key too long" : "value too long";
      return Found::kBad;
    }
    if (scan->at + 8 + length > kMaxRequest) {
      *why = "request too long";
      return Found::kBad;
    }
    if (lacks(8 + length)) return Found::kPart;
    scan->at += 8 + length;
    if (scan->left > 0) {
      --scan->left;
    } else {
      ++scan->field;
    }
  }
  return Found::kWhole;
}

void Parser::Slice(Op op, std::string_view bytes, Request* request) {
  request->op = op;
  request->number = 0;
  request->args.clear();
  const char* at = bytes.data() + 1;
  auto take = [&] {
    uint64_t length = Load<uint64_t>(at);
    request->args.emplace_back(at + 8, length);
    at += 8 + length;
  };
  for (const char* field = kLayouts[static_cast<int>(op)]; *field != 0; ++field) {
    switch (*field) {
      case 'i':
        request->number = Load<int64_t>(at);
        at += 8;
        break;
      case 'u':
        request->number = Load<uint32_t>(at);
        at += 4;
        break;
      case 'K':
      case 'P': {
        uint64_t count = Load<uint64_t>(at) * (*field == 'P' ? 2 : 1);
        at += 8;
        while (count-- > 0) take();
        break;
      }
      default:
        take();
    }
  }
}

void PutKeys(std::string* out, Op op, std::span<const std::string> keys) {
  PutOp(out, op);
  PutNumber<uint64_t>(out, keys.size());
  for (const std::string& key : keys) PutString(out, key);
}

}  // namespace muster::store
