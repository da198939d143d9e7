// How an informer follows a kind of object: (what it knows, a page | a line of the watch | an end) -> what to do next.
// Pure; outside bytes.
//
// Begin -> list page after page -> watch from the list's resourceVersion -> watch on from the last line's. An object is
// told once for each resourceVersion: what a second list brings unchanged is not told again.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/reconcile/back_off.h"

namespace muster::controller {

// An object that is there no more.
struct GoneObject {
  std::string ns, name;
  // It was gone by this resourceVersion: one of its name with a higher version is another one.
  std::string version;
};

struct InformerAction {
  enum class Kind {
    kPut,     // `object` is new or changed
    kGone,    // `gone`
    kSynced,  // the first list is complete
    kSay,     // `text`
    // The last one of what a call gives, if it is there: whatever was under way ends.
    kList,   // the first page, or the one after the continuation `text`
    kWatch,  // from the resourceVersion `text`
    kPause,  // `pause`, then Resume
  };
  Kind kind;
  Json object = nullptr;
  GoneObject gone;
  std::string text;
  Duration pause{};
};

class InformerState {
 public:
  using Actions = std::vector<InformerAction>;

  // `what`: for messages: "pods". `optional`: where the server does not know the kind, there is no object, for good.
  explicit InformerState(std::string what, BackOffRules rules = {}, bool optional = false)
      : what_(std::move(what)), rules_(rules), optional_(optional) {}

  Actions Begin();
  Actions Listed(StatusOr<Json> page);
  Actions Line(std::string_view line);                  // of the watch
  Actions Ended(const Status& status, Duration lived);  // the watch
  Actions Resume();                                     // a pause is over
  bool synced() const { return synced_; }

 private:
  struct Identity {
    std::string ns, name, version;
    std::string key() const { return ns + "/" + name; }
  };
  static Identity IdentityOf(const Json& object);

  void Put(Json object, Actions* actions);
  void Gone(const Identity& identity, Actions* actions);
  void ListAnew();
  void Go(Actions* actions);                                               // on with what comes next
  void Fail(const Status& why, bool say, bool at_once, Actions* actions);  // the same, after a pause
  void Complete(const std::string& version, Actions* actions);

  const std::string what_;
  const BackOffRules rules_;
  const bool optional_;
  std::map<std::string, std::string> known_;  // "namespace/name" -> resourceVersion
  std::set<std::string> seen_;                // in the list that is under way
  bool listing_ = true;
  std::string continuation_, version_;
  int failures_ = 0;  // in a row: since a watch brought something, or lived for a while
  int lines_ = 0;     // of this watch
  bool said_ = false, synced_ = false;
};

}  // namespace muster::controller
