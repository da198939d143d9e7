// A kind of object, kept in step with the API server: listed page by page, then watched. Loop thread only.
//
// It keeps names and resource versions alone: whoever hears of an object keeps what he needs of it. The watch goes on
// after a cut from where it was (bookmarks keep that place young); after 410, or an ERROR event, all is listed anew,
// and what has vanished meanwhile is told as deleted. An object that was deleted and made anew between two lists is
// told as changed: its uid tells. Failures are retried for ever, with pauses up to 30 s; the first one is said, and
// that it is over.
//
// Callbacks may add and drop what they like, the informer too.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "controller/kube/api_client.h"
#include "controller/kube/informer_state.h"

namespace muster::controller {

class Informer {
 public:
  struct Events {
    std::function<void(const Json& object)> put;  // new or changed; apiVersion and kind are always filled
    std::function<void(const GoneObject&)> gone;
    std::function<void()> synced;  // once: the first list is complete
    std::function<void(const std::string& text)> say;
  };
  // `ns`: empty: of all namespaces. `selector`, `fields`: of labels and fields, as kubectl takes them; empty: all.
  // `client` outlives it.
  Informer(boost::asio::io_context& loop, ApiClient& client, Resource resource, std::string ns, std::string selector,
           Events events, const std::string& fields = "");
  ~Informer();
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;
  void Begin();
  bool synced() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::controller
