// SPDX-License-Identifier: Apache-2.0
// Load test of the admission webhooks. Parallel clients, each with its own connection, call one URL after the other, as
// an API server does for one request. The first round of each, which has the TLS handshake, does not count.
//
//     review_load --ca FILE [--parallel 64] [--rounds 5000] URL BODY-FILE [URL BODY-FILE ...]
//
// Prints one JSON object: the median, p99 and longest time of a round over all URLs, in seconds, the number of rounds,
// and rounds per second.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "base/json_fields.h"
#include "base/print.h"
#include "base/text.h"
#include "http/conversation.h"

namespace muster {
namespace {

struct Load {
  std::vector<http::Request> round;
  int left = 0;
  std::vector<double> seconds;
  std::string wrong;
};

boost::asio::awaitable<void> AskRounds(http::Client& client, Load& load) {
  for (bool first = true; load.wrong.empty() && (first || load.left-- > 0); first = false) {
    const auto begun = MonotonicClock::now();
    for (const http::Request& request : load.round) {
      const http::Answer answer = co_await http::Asked(client, request, {}, size_t{1} << 20);
      const bool allowed = answer.body.find("\"allowed\":true") != std::string::npos;
      if (answer.head.status == 200 && allowed) continue;
      load.wrong = fmt::format("{} answers {}: {}{}", request.url, answer.head.status, answer.body, answer.end.what);
      co_return;
    }
    if (!first) load.seconds.push_back(std::chrono::duration<double>(MonotonicClock::now() - begun).count());
  }
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

int Run(int argc, char** argv) {
  std::string ca;
  int parallel = 64, rounds = 5000;
  std::vector<std::string> words;
  CLI::App app("Load of the admission webhooks");
  app.add_option("--ca", ca, "PEM file of the webhooks' authority")->required()->check(CLI::ExistingFile);
  app.add_option("--parallel", parallel, "askers at a time")->check(CLI::Range(1, 10000));
  app.add_option("--rounds", rounds, "in all")->check(CLI::Range(1, 10000000));
  app.add_option("round", words, "URL BODY-FILE ...")->required();
  CLI11_PARSE(app, argc, argv);
  Load load;
  load.left = rounds;
  for (size_t at = 0; at + 1 < words.size(); at += 2) {
    load.round.push_back({.method = "POST",
                          .url = words[at],
                          .headers = {{"Content-Type", "application/json"}},
                          .body = ReadFile(words[at + 1])});
  }
  boost::asio::io_context loop;
  http::Client client(loop, {.ca_pem = ReadFile(ca), .connections = parallel});
  std::vector<std::shared_ptr<void>> askers;
  const auto begun = MonotonicClock::now();
  for (int at = 0; at < parallel; ++at) askers.push_back(http::Converse(loop, AskRounds(client, load)));
  loop.run();
  const double wall = std::chrono::duration<double>(MonotonicClock::now() - begun).count();
  if (!load.wrong.empty()) {
    PrintTo(stderr, "review_load: {}\n", load.wrong);
    return 1;
  }
  std::sort(load.seconds.begin(), load.seconds.end());
  const auto at = [&load](double share) {
    return load.seconds[static_cast<size_t>(share * static_cast<double>(load.seconds.size() - 1))];
  };
  const Json said = {{"rounds", rounds},
                     {"median_s", at(0.5)},
                     {"p99_s", at(0.99)},
                     {"longest_s", at(1)},
                     {"rounds_per_s", rounds / wall}};
  PrintTo(stdout, "{}\n", WriteJson(said));
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) { return muster::Run(argc, argv); }
