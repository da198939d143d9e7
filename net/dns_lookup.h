// SPDX-License-Identifier: Apache-2.0
// Looks up the addresses of one host name by DNS. Asks for A and AAAA at the same time, along the search list of
// resolv.conf. Loop thread only.
//
// Each look-up has its own c-ares channel, so it reads the current resolv.conf when it begins.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace muster::net {

// How resolv.conf completes names that have no final dot.
struct SearchRules {
  std::vector<std::string> domains;  // without final dots; an empty text is the root
  int ndots = 1;                     // a name with at least so many dots is first tried unchanged
  bool operator==(const SearchRules&) const = default;
};
// Follows resolv.conf(5). `text` is the file; `localdomain` and `res_options` are the variables LOCALDOMAIN and
// RES_OPTIONS, which take precedence. If none gives a domain, the domain of `host_name` is used. Pure.
SearchRules ReadSearchRules(std::string_view text, std::string_view localdomain, std::string_view res_options,
                            std::string_view host_name);
// The names to ask for, in glibc's order, each with a final dot. Pure.
std::vector<std::string> CompleteNames(const std::string& name, const SearchRules& rules);

// The answer for one record type.
enum class Heard {
  kNothing,    // no answer so far
  kAddresses,  // at least one address
  kNoData,     // the name exists, but has no record of this type
  kNoName,     // the name does not exist
  kFailed,     // no server gave a usable answer
};
// How long to wait for the record type without an answer; `left` is the caller's time. Zero: both have one. Pure.
Duration PatienceFor(Heard a, Heard aaaa, Duration left);

// How long the first try waits before the question is sent again. The second try waits twice as long, so both fit into
// the caller's limit unless it is very short. Pure.
Duration FirstTry(Duration limit);

class DnsLookUp {
 public:
  struct Options {
    std::string servers;      // "127.0.0.1:5353,..." instead of the servers in resolv.conf; for tests
    std::string resolv_conf;  // path instead of /etc/resolv.conf; for tests
    int port = 0;             // port of servers that are given without one; 0: 53
  };
  // At most kMaxAddresses different addresses, IPv4 first. Errors: those of Resolver::Done.
  using Done = std::function<void(StatusOr<std::vector<boost::asio::ip::address>>)>;
  static constexpr size_t kMaxAddresses = 16;

  // Calls `done` once, on the loop, never from within this call and at the latest after `limit`, with the addresses
  // known by then. Destroying the look-up cancels it; `done` may do that.
  static std::unique_ptr<DnsLookUp> Start(boost::asio::io_context& loop, const Options& options,
                                          const std::string& name, Duration limit, Done done);
  ~DnsLookUp();
  DnsLookUp(const DnsLookUp&) = delete;
  DnsLookUp& operator=(const DnsLookUp&) = delete;

 private:
  class Impl;
  explicit DnsLookUp(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::net
