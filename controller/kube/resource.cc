#include "controller/kube/resource.h"

#include "base/text.h"
#include "http/percent.h"

namespace muster::controller {

std::string PathOf(const Resource& resource, std::string_view ns, std::string_view name, std::string_view subresource) {
  std::string path = fmt::format("/{}/{}", resource.api.find('/') == std::string::npos ? "api" : "apis", resource.api);
  if (resource.namespaced && !ns.empty()) path += fmt::format("/namespaces/{}", http::PercentEncode(ns));
  path += fmt::format("/{}", resource.plural);
  if (!name.empty()) path += fmt::format("/{}", http::PercentEncode(name));
  if (!subresource.empty()) path += fmt::format("/{}", subresource);
  return path;
}

}  // namespace muster::controller
