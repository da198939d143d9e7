// SPDX-License-Identifier: Apache-2.0
// HTTP on its own threads, for large bodies. The thread that decrypts bytes also passes them to the intake, while they
// are in its core's cache. So TLS is not limited to one core.
//
// Sinks are called on the loop, intakes on the receiving thread. An intake takes no byte before its sink has returned
// from Head on the loop. After Cancel the intake may still take bytes until it is destroyed; its destructor can tell
// the owner when.
//
// Loop thread only. Threads start when they are needed and end with this object. Its destructor waits for running
// intakes.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <unordered_map>
#include <vector>

#include "http/client.h"

namespace muster::http {

class ClientThreads final : public Transport {
 public:
  // `options`: for the client of each thread. `most`: largest number of threads.
  ClientThreads(boost::asio::io_context& loop, Options options, int most);
  ~ClientThreads() override;
  ClientThreads(const ClientThreads&) = delete;
  ClientThreads& operator=(const ClientThreads&) = delete;

  Id Start(const Request& request, const Limits& limits, Sink& sink) override;
  void Resume(Id id) override;
  void Cancel(Id id) override;

 private:
  class Thread;
  class Answer;
  struct Asked {
    Thread* thread;
    Sink* sink;
  };

  Thread& Idlest();
  void Heard(Id id, const ResponseHead& head);
  void Ended(Id id, const TransferEnd& end);

  boost::asio::io_context& loop_;
  const Options options_;
  const size_t most_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::unordered_map<Id, Asked> asked_;
  Id last_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::http
