// SPDX-License-Identifier: Apache-2.0
#include "local/commands.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptors.h"
#include "base/exit_codes.h"
#include "base/print.h"
#include "base/quoted.h"
#include "base/replace_file.h"
#include "base/status.h"
#include "base/text.h"
#include "controller/api/nearest_names.h"
#include "local/job_samples.h"

namespace muster::local {

using namespace controller;

namespace {

struct Flags {
  std::string kind = "torch", output = "job.yaml";
};

// Never changes an existing file.
Status WriteNew(const std::string& path, std::string_view text) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.get() < 0 && errno == EEXIST) {
    return absl::AlreadyExistsError(
        fmt::format("{}: it exists already; move it away, or give another name with --output", Quoted(path)));
  }
  if (file.get() < 0) return ErrnoStatus(errno, fmt::format("{}: it cannot be made", Quoted(path)));
  Status written = WriteAll(file.get(), text, Quoted(path));
  if (!written.ok()) unlink(path.c_str());
  return written;
}

int UnknownKind(const std::string& kind) {
  std::vector<std::string> names;
  for (const JobSample& sample : kJobSamples) names.emplace_back(sample.name);
  const std::vector<std::string> nearest = NearestNames(kind, names);
  PrintTo(stderr, "muster init: {} is not a kind of job{}; there are {}\n", Quoted(kind),
          nearest.empty() ? "" : fmt::format(" (the nearest is {})", Quoted(nearest.front())), Join(names, ", "));
  return kExitUsage;
}

int Run(const Flags& flags) {
  const auto sample = std::find_if(kJobSamples.begin(), kJobSamples.end(),
                                   [&flags](const JobSample& one) { return one.name == flags.kind; });
  if (sample == kJobSamples.end()) return UnknownKind(flags.kind);
  if (flags.output == "-") {
    PrintTo(stdout, "{}", sample->text);
    return 0;
  }
  const Status written = WriteNew(flags.output, sample->text);
  if (!written.ok()) {
    PrintTo(stderr, "muster init: {}\n", Message(written));
    return kExitBadConfiguration;
  }
  PrintTo(stderr, "{}: {}. Run it: muster local -f {}\n", flags.output, sample->summary, flags.output);
  return 0;
}

}  // namespace

void AddInitFlags(CLI::App* app, std::function<int()>* run) {
  auto flags = std::make_shared<Flags>();
  app->add_option("kind", flags->kind, "torch | mpi | jax | pytorchjob; default torch")
      ->type_name("torch|mpi|jax|pytorchjob");
  app->add_option("-o,--output", flags->output, "the file to write; -: stdout; default job.yaml")->type_name("FILE");
  app->callback([flags, run] { *run = [flags] { return Run(*flags); }; });
}

}  // namespace muster::local
