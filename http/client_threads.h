// HTTP on threads of its own, for large bodies. The thread that decrypts bytes also hands them to the intake, while
// they are in its core's cache. So TLS is not limited to one core.
//
// Sinks are called on the loop, intakes on the thread that receives. No byte of a body is taken before its sink has
// answered Head on the loop. After a cancel the intake may still take bytes until it is destroyed; an owner that must
// know when has the intake tell it.
//
// Loop thread only. Threads start when they are needed and end with this object: its destructor waits for intakes that
// are at work.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <unordered_map>
#include <vector>

#include "http/client.h"

namespace muster::http {

class ClientThreads final : public Transport {
 public:
  // `options`: of the client that each thread has.
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
