// SPDX-License-Identifier: Apache-2.0
// The people who look at the live page of this agent: GET / and GET /events. Loop thread only.
//
// One content is made for all of them, at each report. It is made, and the coordinator is asked, only while somebody
// looks. At most kMost streams of events go on at a time; a further one gets 503, and its page loads itself again.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "agent/live_source.h"
#include "agent/page/live_page.h"
#include "http/server.h"

namespace muster::agent {

class Viewers {
 public:
  static constexpr size_t kMost = 16;
  struct Sources {
    std::function<Attended()> attended;
    std::function<rendezvous::StatusReport()> own;  // of this node alone, if no coordinator answers
    std::string job, version;                       // as in LiveView
  };
  // `inner` must outlive it.
  Viewers(boost::asio::io_context& loop, std::string run_id, LiveOptions options, InnerStatus& inner, Sources sources);
  ~Viewers();

  void Page(const http::Server::Answer& answer);
  void Events(const std::string& query, const http::Server::Answer& answer);
  // Tells the pages that are open that the run has ended, and how, unless they know. False: none is open.
  bool End(const std::string& sentence);

 private:
  class Stream;

  void Look();
  void Show(LiveView view);
  void Trouble(const std::string& why);
  void Left(Stream* stream);

  const LiveOptions options_;
  const Sources sources_;
  LiveSource source_;
  boost::asio::steady_timer nobody_;  // ends the asking
  std::shared_ptr<const LiveContent> content_;
  TimePoint made_{};
  int reports_ = 0;                            // since somebody looks
  std::string trouble_, ended_;                // one sentence each; empty: none
  std::vector<http::Server::Answer> waiting_;  // pages that wait for the first report
  std::list<Stream*> streams_;
};

}  // namespace muster::agent
