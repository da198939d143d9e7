// SPDX-License-Identifier: Apache-2.0
#include "net/resolver.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "base/text.h"

namespace muster::net {

namespace asio = boost::asio;
using Addresses = std::vector<asio::ip::address>;

namespace {

constexpr size_t kMaxHostsFile = size_t{4} << 20;

std::optional<asio::ip::address> Numeric(std::string_view text) {
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  boost::system::error_code error;
  asio::ip::address address = asio::ip::make_address(std::string(text), error);
  if (error) return std::nullopt;
  return address;
}

bool IsName(std::string_view name) {
  if (name.empty() || name.size() > 253) return false;
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return c > ' ' && c < 0x7f && c != ':' && c != '/'; });
}

// hosts(5): address, names; '#' starts a comment.
Addresses FromHosts(const std::string& path, const std::string& name) {
  Addresses addresses;
  std::ifstream file(path);
  std::string line;
  size_t seen = 0;
  while (std::getline(file, line) && (seen += line.size()) < kMaxHostsFile) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string word;
    if (!(words >> word)) continue;
    std::optional<asio::ip::address> address = Numeric(word);
    if (!address) continue;
    while (words >> word) {
      if (Lower(word) != name) continue;
      if (std::find(addresses.begin(), addresses.end(), *address) == addresses.end()) addresses.push_back(*address);
      break;
    }
    if (addresses.size() == DnsLookUp::kMaxAddresses) break;
  }
  return addresses;
}

}  // namespace

class Resolver::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, Options options) : loop_(loop), options_(std::move(options)) {}

  void Resolve(const std::string& given, Duration limit, Done done) {
    if (std::optional<asio::ip::address> address = Numeric(given)) return Answer(std::move(done), Addresses{*address});
    std::string name = Lower(given);
    if (!name.empty() && name.back() == '.') name.pop_back();
    if (!IsName(name)) {
      return Answer(std::move(done), absl::InvalidArgumentError(fmt::format("\"{}\" is not a host name", given)));
    }
    if (name == "localhost" || name.ends_with(".localhost")) {  // RFC 6761; c-ares would ask a server
      return Answer(std::move(done), Addresses{asio::ip::address_v4::loopback(), asio::ip::address_v6::loopback()});
    }
    if (Addresses addresses = FromHosts(options_.hosts_file, name); !addresses.empty()) {
      return Answer(std::move(done), std::move(addresses));
    }
    uint64_t id = next_++;
    lookups_[id] = DnsLookUp::Start(loop_, options_.dns, given, limit,
                                    [this, id, done = std::move(done)](StatusOr<Addresses> found) {  // not after Stop
                                      std::unique_ptr<DnsLookUp> over = std::move(lookups_.extract(id).mapped());
                                      Done tell = done;  // a copy, since the call may destroy this object
                                      tell(std::move(found));
                                    });
  }

  void Stop() { lookups_.clear(); }

 private:
  void Answer(Done done, StatusOr<Addresses> result) {
    asio::post(loop_, [weak = weak_from_this(), done = std::move(done), result = std::move(result)]() mutable {
      if (weak.lock()) done(std::move(result));
    });
  }

  asio::io_context& loop_;
  const Options options_;
  uint64_t next_ = 1;
  std::map<uint64_t, std::unique_ptr<DnsLookUp>> lookups_;
};

Resolver::Resolver(asio::io_context& loop, Options options) : impl_(std::make_shared<Impl>(loop, std::move(options))) {}
Resolver::~Resolver() { impl_->Stop(); }

void Resolver::Resolve(const std::string& name, Duration limit, Done done) {
  impl_->Resolve(name, limit, std::move(done));
}

}  // namespace muster::net
