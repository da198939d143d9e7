// A kind of object, kept in step with the API server: listed page by page, then watched. Loop thread only.
//
// Each object is projected when it comes: what the projection leaves out is not kept. The watch goes on after a cut
// from where it was (bookmarks keep that place young); after 410, or an ERROR event, all is listed anew, and what has
// vanished meanwhile is told as deleted. An object that was deleted and made anew between two lists is told as changed:
// its uid tells. Failures are retried for ever, with pauses up to 30 s; the first one is said, and that it is over.
// An object that cannot be read is told by `unreadable`, and counts as not there.
//
// Callbacks may add and drop what they like, the informer too.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "controller/kube/api_client.h"

namespace muster::controller {

class InformerBase {
 public:
  struct Events {
    std::function<void(const Json& object)> put;  // new or changed; apiVersion and kind are always filled
    std::function<void(const std::string& ns, const std::string& name)> gone;
    std::function<void()> synced;  // once: the first list is complete
    std::function<void(const std::string& text)> say;
  };
  // `ns`: empty: of all namespaces. `selector`: of labels, as kubectl takes it; empty: all. `client` outlives it.
  InformerBase(boost::asio::io_context& loop, ApiClient& client, Resource resource, std::string ns,
               std::string selector, Events events);
  ~InformerBase();
  InformerBase(const InformerBase&) = delete;
  InformerBase& operator=(const InformerBase&) = delete;
  void Begin();
  bool synced() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

// With a store: "namespace/name" -> what `read` makes of an object.
template <class Object>
class Informer {
 public:
  using Read = std::function<StatusOr<Object>(const Json&)>;
  struct Events {
    std::function<void(const Object& object)> put;
    std::function<void(const Object& last)> gone;
    std::function<void()> synced;
    std::function<void(const std::string& text)> say;
    std::function<void(const Json& object, const Status& why)> unreadable;
  };
  Informer(boost::asio::io_context& loop, ApiClient& client, Resource resource, std::string ns, std::string selector,
           Read read, Events events)
      : store_(std::make_shared<Store>(Store{{}, std::move(events), std::move(read)})),
        base_(std::make_unique<InformerBase>(
            loop, client, std::move(resource), std::move(ns), std::move(selector),
            InformerBase::Events{.put = [store = store_](const Json& object) { store->Put(object); },
                                 .gone = [store = store_](const std::string& of,
                                                          const std::string& name) { store->Gone(Key(of, name)); },
                                 .synced = store_->events.synced,
                                 .say = store_->events.say})) {}
  void Begin() { base_->Begin(); }
  bool synced() const { return base_->synced(); }
  const std::map<std::string, Object>& all() const { return store_->objects; }
  // Null: it is not there.
  const Object* Find(const std::string& ns, const std::string& name) const {
    auto found = store_->objects.find(Key(ns, name));
    return found == store_->objects.end() ? nullptr : &found->second;
  }

  static std::string Key(const std::string& ns, const std::string& name) { return ns + "/" + name; }

 private:
  struct Store {
    void Put(const Json& object) {
      const Json* meta = FindField(object, "metadata");
      const std::string key = Key(TextField(*meta, "namespace"), TextField(*meta, "name"));
      StatusOr<Object> made = read(object);
      if (!made.ok()) {
        events.unreadable(object, made.status());
        return Gone(key);
      }
      auto [entry, added] = objects.insert_or_assign(key, *std::move(made));
      events.put(entry->second);
    }
    void Gone(const std::string& key) {
      auto last = objects.extract(key);
      if (!last.empty()) events.gone(last.mapped());
    }
    std::map<std::string, Object> objects;
    const Events events;
    const Read read;
  };

  const std::shared_ptr<Store> store_;
  std::unique_ptr<InformerBase> base_;
};

}  // namespace muster::controller
