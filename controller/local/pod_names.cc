#include "controller/local/pod_names.h"

#include <unistd.h>

#include "base/text.h"
#include "controller/api/lenient.h"

namespace muster::controller {
namespace {

bool Selects(const Json& service, const Json& pod) {
  const Json& selector = MapField(PartOf(service, "spec"), "selector");
  const Json& labels = MapField(PartOf(pod, "metadata"), "labels");
  for (const auto& [name, value] : selector.items()) {
    if (!value.is_string() || TextField(labels, name.c_str()) != value.get_ref<const std::string&>()) return false;
  }
  return !selector.empty();
}

std::string Spelled(const std::string& name, const std::string& ns) {
  return fmt::format(" {0} {0}.{1} {0}.{1}.svc {0}.{1}.svc.cluster.local", name, ns);
}

}  // namespace

std::string HostOf(const Json& pod) {
  const std::string host = TextField(PartOf(pod, "spec"), "hostname");
  return host.empty() ? TextField(PartOf(pod, "metadata"), "name") : host;
}

// Two runs at a time seldom meet: the second and third number go by the process.
std::string PodNames::AddressOf(const Json& pod) {
  auto [known, is_new] = addresses_.try_emplace(HostOf(pod));
  if (is_new) {
    const int run = static_cast<int>(getpid()), count = static_cast<int>(addresses_.size()) - 1;
    known->second = fmt::format("127.{}.{}.{}", run % 253 + 1, (run / 253 + count / 250) % 256, count % 250 + 2);
  }
  return known->second;
}

std::string PodNames::FileOf(const std::vector<const Json*>& pods, const std::vector<const Json*>& services) {
  std::string text = "127.0.0.1 localhost\n::1 localhost\n";
  for (const Json* pod : pods) {
    const std::string host = HostOf(*pod), ns = TextField(PartOf(*pod, "metadata"), "namespace");
    std::string names = " " + host;
    for (const Json* service : services) {
      if (!Selects(*service, *pod)) continue;
      const std::string name = TextField(PartOf(*service, "metadata"), "name");
      if (TextField(PartOf(*pod, "spec"), "subdomain") == name) names += Spelled(fmt::format("{}.{}", host, name), ns);
      names += Spelled(name, ns);
    }
    text += AddressOf(*pod) + names + "\n";
  }
  return text;
}

}  // namespace muster::controller
