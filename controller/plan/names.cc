// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/names.h"

#include <openssl/evp.h>

#include "base/text.h"
#include "controller/plan/plan.h"

namespace muster::controller {
namespace {

constexpr size_t kHashLetters = 8;

std::string Hex(std::string_view text, const EVP_MD* algorithm) {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (EVP_Digest(text.data(), text.size(), bytes, &length, algorithm, nullptr) != 1) length = 0;
  std::string hex;
  for (unsigned i = 0; i < length; ++i) hex += fmt::format("{:02x}", bytes[i]);
  return hex;
}

}  // namespace

std::string ShortName(std::string_view name, size_t most) {
  if (name.size() <= most) return std::string(name);
  const std::string hash = Sha256Hex(name);
  if (most <= kHashLetters + 1) return hash.substr(0, most);
  std::string_view beginning = name.substr(0, most - kHashLetters - 1);
  while (!beginning.empty() && (beginning.back() == '-' || beginning.back() == '.')) beginning.remove_suffix(1);
  // If separators were removed, more of the hash fills the place.
  return fmt::format("{}-{}", beginning, std::string_view(hash).substr(0, most - beginning.size() - 1));
}

std::string JobName(std::string_view train_job, std::string_view replicated_job, int index) {
  return ShortName(fmt::format("{}-{}-{}", train_job, replicated_job, index), kMostJobName);
}

std::string HostName(std::string_view train_job, std::string_view replicated_job, int index, int pod,
                     std::string_view subdomain) {
  return fmt::format("{}-{}.{}", JobName(train_job, replicated_job, index), pod, subdomain);
}

std::string Sha1Hex(std::string_view text) { return Hex(text, EVP_sha1()); }
std::string Sha256Hex(std::string_view text) { return Hex(text, EVP_sha256()); }

}  // namespace muster::controller
