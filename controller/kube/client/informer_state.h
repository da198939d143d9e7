// SPDX-License-Identifier: Apache-2.0
// The state machine of an informer: (state, a page | a line of the watch | the end of the watch) -> actions. Pure;
// untrusted input.
//
// Begin -> stream: a watch that begins with all objects and a mark of their end -> watch again from the version of the
// last line. A server that has no streams (Kubernetes before 1.32, mostly) gives the list page by page, and a watch
// from its version. A stream that ends before its mark is followed by pages, which go on where a stream begins anew.
// Each resourceVersion of an object is reported once: an object that a second list brings unchanged is not reported
// again.
//
// Source of streams: Kubernetes' "Streaming lists" (sendInitialEvents, KEP-3157).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/kube/client/protobuf_object.h"
#include "controller/kube/client/resource.h"
#include "controller/reconcile/back_off.h"

namespace muster::controller {

// An object that does not exist any more.
struct GoneObject {
  std::string ns, name;
  // It was gone at this resourceVersion. An object of its name with a higher version is another one.
  std::string version;
};

struct InformerAction {
  enum class Kind {
    kPut,     // `object` is new or changed
    kGone,    // `gone`
    kSynced,  // the first list is complete
    kSay,     // `text`
    // The next four end what is under way. A call returns at most one of them, as its last action.
    kList,    // the first page, or the page after the continuation `text`
    kStream,  // all objects, then their changes
    kWatch,   // from the resourceVersion `text`
    kPause,   // for `pause`, then Resume
  };
  Kind kind;
  Json object = nullptr;
  // Of an event in protobuf: the object, in the bytes of the event, instead of `object`.
  std::optional<ObjectView> protobuf = std::nullopt;
  GoneObject gone;
  std::string text;
  Duration pause{};

  ObjectView View() const { return protobuf ? *protobuf : ObjectView(object); }
};

class InformerState {
 public:
  using Actions = std::vector<InformerAction>;

  explicit InformerState(Resource resource, BackOffRules rules = {}) : resource_(std::move(resource)), rules_(rules) {}

  Actions Begin();
  Actions Listed(StatusOr<Json> page);
  // A line or frame of the watch, which must outlive what is returned. `whole`: false: it is the beginning of a longer
  // one. The object is named and left out: its last known state stays. etcd holds no such object of a custom kind; a
  // pod has one only if its text is escaped.
  Actions Line(std::string_view line, bool whole = true, Encoding encoding = Encoding::kJson);
  Actions Ended(const Status& status, Duration lived);  // the watch or stream
  Actions Resume();                                     // a pause is over
  bool synced() const { return synced_; }

 private:
  struct Identity {
    std::string ns, name, version;
    std::string key() const { return ns + "/" + name; }
  };
  static Identity IdentityOf(const ObjectView& object);

  // An event of the watch. `put` has its object, and is the action if that is news.
  void Tell(const std::string& type, bool whole, InformerAction put, Actions* actions);
  void NoEvent(std::string_view line, Actions* actions);
  void Put(const Identity& identity, InformerAction put, Actions* actions);
  void Gone(const Identity& identity, Actions* actions);
  void LeaveOut(const Identity& identity, Actions* actions);
  void StreamEnded(const Status& status, Actions* actions);  // without its mark
  void GoByPages(bool always, Actions* actions);             // `always`: the server has no streams
  bool IsLeftOut(const Status& status, Actions* actions);    // the server does not know an optional kind
  void ListAnew();
  void Go(Actions* actions);                                               // lists or watches
  void Fail(const Status& why, bool say, bool at_once, Actions* actions);  // a failure; then Go, at once or later
  void Complete(const std::string& version, Actions* actions);

  const Resource resource_;
  const BackOffRules rules_;
  std::map<std::string, std::string> known_;  // "namespace/name" -> resourceVersion
  std::set<std::string> seen_;                // keys that the list under way has brought
  std::set<std::string> left_out_;            // keys of objects whose last event was too long
  bool listing_ = true;
  bool streams_ = true;  // false: the server has none
  bool paged_ = false;   // this list comes page by page
  std::string continuation_, version_;
  int failures_ = 0;  // in a row, until a watch brings an event or lives for a while
  int lines_ = 0;     // of the current watch
  bool said_ = false, synced_ = false;
};

}  // namespace muster::controller
