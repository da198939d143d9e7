// SPDX-License-Identifier: Apache-2.0
// Hashing speed of each method that this CPU has, on blocks in the cache, as in the transfer engine. And the cost of
// 20,000 files in the list and the manifest.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <zlib.h>

#include "initializers/facts/crc.h"
#include "initializers/facts/crc_cpu.h"
#include "initializers/facts/digest.h"
#include "initializers/facts/entry_path.h"
#include "initializers/target/manifest.h"

namespace muster::initializers {
namespace {

constexpr size_t kBlock = 256 << 10;

template <typename Word>
void UpdateBlocks(benchmark::State& state, Word (*update)(Word, const unsigned char*, size_t)) {
  const std::string block(kBlock, 'x');
  Word crc = 0;
  for (auto _ : state) {
    crc = update(crc, reinterpret_cast<const unsigned char*>(block.data()), block.size());
    benchmark::DoNotOptimize(crc);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * block.size()));
}

void HashBlocks(benchmark::State& state, HashKind kind) {
  const std::string block(kBlock, 'x');
  auto hasher = Hasher::Make(kind, 0);
  for (auto _ : state) hasher->Update(block);
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * block.size()));
}

uint32_t ZlibUpdate(uint32_t crc, const unsigned char* data, size_t size) {
  return static_cast<uint32_t>(crc32(crc, data, static_cast<uInt>(size)));
}

void CombineRanges(benchmark::State& state, HashKind kind) {
  std::string value(HashBytes(kind), 'x');
  for (auto _ : state) value = Combine(kind, value, value, 8 << 20);
}

Manifest ManyFiles() {
  Manifest manifest;
  for (int i = 0; i < 20'000; ++i) {
    manifest.files.push_back({fmt::format("train/{:03}/{:06}.jpg", i / 100, i), 100'000, "crc32c:e3069283", true,
                              fmt::format("\"{:032x}\"", i), 1'795'309'323'000'000'000 + i});
  }
  return manifest;
}

void ReadManyFiles(benchmark::State& state) {
  const std::string text = WriteManifest(ManyFiles());
  for (auto _ : state) benchmark::DoNotOptimize(ReadManifest(text));
}

void WriteManyFiles(benchmark::State& state) {
  const Manifest manifest = ManyFiles();
  for (auto _ : state) benchmark::DoNotOptimize(WriteManifest(manifest));
}

void CheckManyPaths(benchmark::State& state) {
  const Manifest manifest = ManyFiles();
  const std::vector<std::string> ignore = {"*.h5", "*.msgpack", "*/[.]*"};
  for (auto _ : state) {
    EntryPaths paths;
    for (const ManifestFile& file : manifest.files) {
      benchmark::DoNotOptimize(CheckEntryPath(file.path).ok() && IsWanted(file.path, {}, ignore) &&
                               paths.Add(file.path).ok());
    }
  }
}

void Register(const CrcUpdates& updates) {
  const std::string way(updates.name);
  benchmark::RegisterBenchmark(("crc32/" + way).c_str(), UpdateBlocks<uint32_t>, updates.crc32);
  benchmark::RegisterBenchmark(("crc32c/" + way).c_str(), UpdateBlocks<uint32_t>, updates.crc32c);
  benchmark::RegisterBenchmark(("crc64nvme/" + way).c_str(), UpdateBlocks<uint64_t>, updates.crc64_nvme);
}

}  // namespace
}  // namespace muster::initializers

int main(int argc, char** argv) {
  using namespace muster::initializers;
  for (const CrcUpdates& updates : CpuCrcUpdates()) Register(updates);
  Register(TableCrcUpdates());
  benchmark::RegisterBenchmark("crc32/zlib", UpdateBlocks<uint32_t>, ZlibUpdate);
  for (HashKind kind : {HashKind::kSha256, HashKind::kSha1, HashKind::kMd5, HashKind::kCrc32, HashKind::kCrc32c,
                        HashKind::kCrc64Nvme}) {
    benchmark::RegisterBenchmark(("hasher/" + std::string(HashName(kind))).c_str(), HashBlocks, kind);
    if (Combines(kind)) {
      benchmark::RegisterBenchmark(("combine/" + std::string(HashName(kind))).c_str(), CombineRanges, kind);
    }
  }
  benchmark::RegisterBenchmark("manifest/read", ReadManyFiles)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("manifest/write", WriteManyFiles)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("paths/check", CheckManyPaths)->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
