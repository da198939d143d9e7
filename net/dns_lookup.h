// One host name -> its addresses by DNS: A and AAAA side by side, along the search list of resolv.conf. Loop thread
// only.
//
// Each look-up has a c-ares channel of its own, so it reads the resolv.conf that is there when it begins.
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

// What resolv.conf says about names that are not complete.
struct SearchRules {
  std::vector<std::string> domains;  // without dots at their ends; empty text: the root
  int ndots = 1;                     // a name with so many dots is tried as it is first
  bool operator==(const SearchRules&) const = default;
};
// resolv.conf(5): `text` is the file, `localdomain` and `res_options` are the variables LOCALDOMAIN and RES_OPTIONS,
// which win. `host_name` gives the domain where nobody names one. Pure.
SearchRules ReadSearchRules(std::string_view text, std::string_view localdomain, std::string_view res_options,
                            std::string_view host_name);
// The complete names to ask for, in order, each with a dot at its end, as glibc does it. Pure.
std::vector<std::string> CompleteNames(const std::string& name, const SearchRules& rules);

// What is known of one record type.
enum class Heard {
  kNothing,    // no answer so far
  kAddresses,  // some
  kNoData,     // the name is there without such a record
  kNoName,     // there is no such name
  kFailed,     // no server answered, or not sensibly
};
// How long to wait for the type that has not answered; `left` is the caller's time. Zero: both have. Pure.
Duration PatienceFor(Heard a, Heard aaaa, Duration left);

// When a question without an answer is sent again. The second try takes twice that, so that both fit into the caller's
// limit, but for a very short one. Pure.
Duration FirstTry(Duration limit);

class DnsLookUp {
 public:
  struct Options {
    std::string servers;      // "127.0.0.1:5353,..." instead of resolv.conf's; for tests
    std::string resolv_conf;  // read instead of /etc/resolv.conf; for tests
    int port = 0;             // of the servers that are given without one; 0: 53
  };
  // At most kMaxAddresses, IPv4 first, each once. Errors: as Resolver's.
  using Done = std::function<void(StatusOr<std::vector<boost::asio::ip::address>>)>;
  static constexpr size_t kMaxAddresses = 16;

  // Calls `done` once, on the loop, never from within this call and at the latest after `limit`; what is known then is
  // the answer. Destroying the look-up drops it; `done` may do that.
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
