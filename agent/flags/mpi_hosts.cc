// SPDX-License-Identifier: Apache-2.0
#include "agent/flags/mpi_hosts.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <unordered_map>

#include "base/text.h"

namespace muster::agent {
namespace {

constexpr size_t kLongestEntry = 1024;
constexpr size_t kLongestName = 253;
constexpr size_t kShownText = 100;

constexpr std::string_view kSlotWords[] = {"slots", "cpu", "count"};
constexpr std::string_view kMostWords[] = {"max_slots", "max-slots", "slots_max", "slots-max",
                                           "max_cpu",   "max-cpu",   "cpu_max",   "cpu-max",
                                           "max_count", "max-count", "count_max", "count-max"};
constexpr std::string_view kDroppedWords[] = {"user", "username", "user_name", "user-name", "port", "binding"};

template <size_t N>
bool OneOf(const std::string_view (&words)[N], std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

bool IsV6(std::string_view text) {
  in6_addr address;
  if (text.find('\0') != std::string_view::npos) return false;  // inet_pton would stop at it
  return text.size() < INET6_ADDRSTRLEN && inet_pton(AF_INET6, std::string(text).c_str(), &address) == 1;
}

bool IsName(std::string_view text) {
  auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_'; };
  return !text.empty() && text.size() <= kLongestName && text[0] != '-' && text[0] != '.' &&
         std::all_of(text.begin(), text.end(), plain);
}

// The part of `text` that an error may show: `text` may be a binary file, or one endless line.
std::string Shown(std::string_view text) {
  std::string shown(text.substr(0, kShownText));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  return text.size() > kShownText ? shown + "..." : shown;
}

// The words of `entry`; each '=' is a word by itself, since blanks around it are allowed.
std::vector<std::string_view> Words(std::string_view entry) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < entry.size();) {
    if (std::isspace(static_cast<unsigned char>(entry[at])) != 0) {
      ++at;
      continue;
    }
    size_t end = at + 1;
    if (entry[at] != '=') {
      while (end < entry.size() && entry[end] != '=' && std::isspace(static_cast<unsigned char>(entry[end])) == 0)
        ++end;
    }
    words.push_back(entry.substr(at, end - at));
    at = end;
  }
  return words;
}

struct Entry {
  std::string_view name;
  std::optional<int> slots, most;
};

Status BadEntry(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

StatusOr<int> ReadSlots(std::string_view text, std::string_view word) {
  auto number = ParseInt(text);
  if (!number || *number < 1 || *number > kMostMpiSlots) {
    return BadEntry(fmt::format("{} is a whole number from 1 to {}", word, kMostMpiSlots));
  }
  return static_cast<int>(*number);
}

// "host", "user@host", "host:2", "[v6]:2", "v6".
Status ReadHost(std::string_view text, Entry* entry) {
  if (size_t at = text.rfind('@'); at != std::string_view::npos) {
    if (at == 0) return BadEntry("there is no user before the @; leave the @ out");
    text.remove_prefix(at + 1);
  }
  std::optional<std::string_view> slots;
  bool bracketed = text.starts_with('[');
  entry->name = text;
  if (bracketed) {
    size_t close = text.find(']');
    if (close == std::string_view::npos) return BadEntry("the bracket is not closed");
    entry->name = text.substr(1, close - 1);
    std::string_view rest = text.substr(close + 1);
    if (!rest.empty() && !rest.starts_with(':')) return BadEntry("after the bracket comes :SLOTS");
    if (!rest.empty()) slots = rest.substr(1);
  } else if (size_t colon = text.find(':'); colon != std::string_view::npos && !IsV6(text)) {
    if (text.find(':', colon + 1) != std::string_view::npos) {
      return BadEntry("this is not an IPv6 address; with slots one is written [ADDRESS]:SLOTS");
    }
    entry->name = text.substr(0, colon);
    slots = text.substr(colon + 1);
  }
  if (bracketed ? !IsV6(entry->name) : !IsV6(entry->name) && !IsName(entry->name)) {
    return BadEntry("this is not a host name or address");
  }
  if (slots) {
    MUSTER_ASSIGN_OR_RETURN(entry->slots, ReadSlots(*slots, "the number after the colon"));
  }
  return absl::OkStatus();
}

StatusOr<Entry> ReadEntry(std::string_view text) {
  if (text.size() > kLongestEntry) return BadEntry(fmt::format("an entry has at most {} bytes", kLongestEntry));
  Entry entry;
  const std::vector<std::string_view> words = Words(text);
  MUSTER_RETURN_IF_ERROR(ReadHost(words[0], &entry));
  for (size_t at = 1; at < words.size(); at += 3) {
    std::string_view word = words[at];
    if (word == "=" || at + 2 >= words.size() || words[at + 1] != "=" || words[at + 2] == "=") {
      return BadEntry("after the host come words like slots=2; a second host needs a comma or a line of its own");
    }
    std::string_view value = words[at + 2];
    const bool most = OneOf(kMostWords, word);
    if (most || OneOf(kSlotWords, word)) {
      std::optional<int>& into = most ? entry.most : entry.slots;
      if (into) return BadEntry(fmt::format("{} is given twice", most ? "max_slots" : "the number of slots"));
      MUSTER_ASSIGN_OR_RETURN(into, ReadSlots(value, word));
    } else if (!OneOf(kDroppedWords, word)) {
      return BadEntry(fmt::format("'{}' is not understood", Shown(word)));
    }
  }
  if (entry.slots && entry.most && *entry.slots > *entry.most) return BadEntry("there are more slots than max_slots");
  if (!entry.slots) entry.slots = entry.most;
  return entry;
}

class HostList {
 public:
  explicit HostList(int default_slots) : default_slots_(default_slots) {}

  Status Add(const Entry& entry) {
    auto [found, fresh] = places_.try_emplace(entry.name, hosts_.size());
    if (fresh) {
      if (hosts_.size() == static_cast<size_t>(kMostMpiHosts)) {
        return BadEntry(fmt::format("there are more than {} hosts", kMostMpiHosts));
      }
      hosts_.emplace_back();
      hosts_.back().name = entry.name;
    }
    Host& host = hosts_[found->second];
    (entry.slots ? host.counted : host.bare) += entry.slots.value_or(1);
    return Slots(host) <= kMostMpiSlots
               ? absl::OkStatus()
               : BadEntry(fmt::format("this host has more than {} slots in all", kMostMpiSlots));
  }

  std::vector<MpiHost> Hosts() const {
    std::vector<MpiHost> hosts;
    for (const Host& host : hosts_) hosts.push_back({std::string(host.name), Slots(host)});
    return hosts;
  }

 private:
  struct Host {
    std::string_view name;
    int counted = 0;  // sum of the slots that were given as numbers
    int bare = 0;     // how often the host is named without a number
  };
  int Slots(const Host& host) const {
    return host.counted == 0 && host.bare == 1 ? default_slots_ : host.counted + host.bare;
  }

  const int default_slots_;
  std::vector<Host> hosts_;
  std::unordered_map<std::string_view, size_t> places_;
};

}  // namespace

StatusOr<std::vector<MpiHost>> ParseMpiHosts(std::string_view text, int default_slots) {
  if (text.size() > kMostMpiHostText) {
    return absl::InvalidArgumentError(
        fmt::format("the list has {} bytes, more than {}: is it a host file?", text.size(), kMostMpiHostText));
  }
  HostList list(default_slots);
  bool any = false;
  int number = 1;
  for (size_t start = 0; start < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = text.substr(start, end - start);
    start = end + 1;
    for (std::string_view part : Split(line.substr(0, line.find('#')), ',')) {
      part = Strip(part);
      if (part.empty()) continue;
      any = true;
      StatusOr<Entry> entry = ReadEntry(part);
      Status added = entry.ok() ? list.Add(*entry) : entry.status();
      if (!added.ok()) {
        return absl::InvalidArgumentError(
            fmt::format("line {}, '{}': {}; write HOST slots=N or HOST:N", number, Shown(part), Message(added)));
      }
    }
  }
  if (!any) return absl::InvalidArgumentError("there is no host in it; write HOST slots=N, one a line");
  return list.Hosts();
}

std::string OpenMpiHostFile(const std::vector<MpiHost>& hosts) {
  std::string text;
  for (const MpiHost& host : hosts) fmt::format_to(std::back_inserter(text), "{} slots={}\n", host.name, host.slots);
  return text;
}

std::string HydraHostFile(const std::vector<MpiHost>& hosts) {
  std::string text;
  for (const MpiHost& host : hosts) {
    const bool v6 = host.name.find(':') != std::string::npos;
    fmt::format_to(std::back_inserter(text), "{}{}{}:{}\n", v6 ? "[" : "", host.name, v6 ? "]" : "", host.slots);
  }
  return text;
}

std::optional<int> CommonSlots(const std::vector<MpiHost>& hosts) {
  if (hosts.empty()) return std::nullopt;
  for (const MpiHost& host : hosts) {
    if (host.slots != hosts[0].slots) return std::nullopt;
  }
  return hosts[0].slots;
}

}  // namespace muster::agent
