// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/client/informer_state.h"

#include <utility>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/kube/client/api_error.h"

namespace muster::controller {
namespace {

using Kind = InformerAction::Kind;

constexpr int kDeepest = 200;  // levels of an event; deeper ones are dropped
constexpr size_t kHead = size_t{16} << 10;
constexpr int kExpired = 410;
constexpr std::chrono::seconds kGoodLife{5};  // a watch that lived this long is not a failure, even without events
constexpr char kEndOfInitial[] = "k8s.io/initial-events-end";  // the annotation of the mark
constexpr char kMissing[] = "the cluster does not serve that kind: apply its CustomResourceDefinition";

// "PodList" -> "Pod". The items of a list may have no kind of their own.
std::string KindOfItems(const Json& page) {
  std::string kind = TextField(page, "kind");
  if (kind.ends_with("List")) kind.resize(kind.size() - 4);
  return kind;
}

// The Status of an ERROR event.
std::string StatusText(const ObjectView& status) {
  if (status.json() != nullptr) return WriteJson(*status.json());
  return WriteJson(Json{{"kind", "Status"}, {"reason", status.Text("reason")}, {"message", status.Text("message")}});
}

}  // namespace

InformerState::Identity InformerState::IdentityOf(const ObjectView& object) {
  const ObjectView meta = object.Part("metadata");
  return {meta.Text("namespace"), meta.Text("name"), meta.Text("resourceVersion")};
}

InformerState::Actions InformerState::Begin() {
  Actions actions;
  ListAnew();
  Go(&actions);
  return actions;
}

InformerState::Actions InformerState::Resume() {
  Actions actions;
  Go(&actions);
  return actions;
}

void InformerState::ListAnew() {
  listing_ = true;
  continuation_.clear();
  seen_.clear();
}

void InformerState::Go(Actions* actions) {
  lines_ = 0;
  if (!listing_) return actions->push_back({.kind = Kind::kWatch, .text = version_});
  if (streams_ && !paged_) return actions->push_back({.kind = Kind::kStream});
  actions->push_back({.kind = Kind::kList, .text = continuation_});
}

void InformerState::Fail(const Status& why, bool say, bool at_once, Actions* actions) {
  ++failures_;
  if (listing_ && failures_ > 1) paged_ = true;  // pages go on where a stream begins anew
  if (say && !std::exchange(said_, true)) {
    const Status told = absl::IsNotFound(why) ? WithRemedy(why, kMissing) : why;
    actions->push_back(
        {.kind = Kind::kSay, .text = fmt::format("{}: {}; trying again", resource_.plural, Message(told))});
  }
  if (at_once && failures_ == 1) return Go(actions);
  actions->push_back({.kind = Kind::kPause, .pause = BackOff(rules_, failures_)});
}

void InformerState::Put(const Identity& identity, InformerAction put, Actions* actions) {
  if (identity.name.empty()) {
    actions->push_back(
        {.kind = Kind::kSay, .text = fmt::format("{}: an object without a name is left out", resource_.plural)});
    return;
  }
  if (listing_) seen_.insert(identity.key());
  left_out_.erase(identity.key());
  auto [known, added] = known_.try_emplace(identity.key(), identity.version);
  if (!added && known->second == identity.version && !identity.version.empty()) return;
  known->second = identity.version;
  actions->push_back(std::move(put));
}

void InformerState::Gone(const Identity& identity, Actions* actions) {
  left_out_.erase(identity.key());
  if (known_.erase(identity.key()) == 0) return;
  actions->push_back({.kind = Kind::kGone, .gone = {identity.ns, identity.name, identity.version}});
}

InformerState::Actions InformerState::Listed(StatusOr<Json> page) {
  Actions actions;
  if (page.ok()) {
    const Json* items = FindField(*page, "items");
    const bool whole = page->is_object() && FindField(*page, "metadata") != nullptr &&
                       (items == nullptr || items->is_array()) && !IdentityOf(*page).version.empty();
    if (!whole)
      page = absl::FailedPreconditionError("the answer is not a list of objects; is this a Kubernetes API server?");
  }
  if (absl::IsOutOfRange(page.status())) {  // a continuation expires after minutes
    ListAnew();
    Fail(page.status(), /*say=*/failures_ > 0, /*at_once=*/true, &actions);
    return actions;
  }
  if (IsLeftOut(page.status(), &actions)) return actions;
  if (!page.ok()) {
    Fail(page.status(), /*say=*/true, /*at_once=*/false, &actions);
    return actions;
  }
  const std::string api = TextField(*page, "apiVersion"), kind = KindOfItems(*page);
  if (auto items = page->find("items"); items != page->end() && items->is_array()) {
    for (Json& item : *items) {
      if (item.is_object()) {
        item.emplace("apiVersion", api);
        item.emplace("kind", kind);
      }
      const Identity identity = IdentityOf(item);
      Put(identity, {.kind = Kind::kPut, .object = std::move(item)}, &actions);
    }
  }
  continuation_ = TextField(page->at("metadata"), "continue");
  if (continuation_.empty()) Complete(IdentityOf(*page).version, &actions);
  Go(&actions);
  return actions;
}

bool InformerState::IsLeftOut(const Status& status, Actions* actions) {
  if (!resource_.optional || synced_ || !absl::IsNotFound(status)) return false;
  synced_ = true;
  actions->push_back({.kind = Kind::kSynced});
  return true;
}

void InformerState::Complete(const std::string& version, Actions* actions) {
  for (auto known = known_.begin(); known != known_.end();) {
    const std::string key = known->first;
    ++known;
    if (seen_.contains(key)) continue;
    const size_t slash = key.find('/');
    Gone({key.substr(0, slash), key.substr(slash + 1), version}, actions);
  }
  seen_.clear();
  listing_ = paged_ = false;
  version_ = version;
  if (std::exchange(said_, false)) {
    actions->push_back({.kind = Kind::kSay, .text = fmt::format("{}: up to date again", resource_.plural)});
  }
  if (!std::exchange(synced_, true)) actions->push_back({.kind = Kind::kSynced});
}

void InformerState::LeaveOut(const Identity& identity, Actions* actions) {
  if (listing_) seen_.insert(identity.key());
  if (!left_out_.insert(identity.key()).second) return;
  actions->push_back(
      {.kind = Kind::kSay,
       .text = fmt::format("{}: {} is left out while it is as long as it is now", resource_.plural, identity.key())});
}

InformerState::Actions InformerState::Line(std::string_view line, bool whole, Encoding encoding) {
  Actions actions;
  switch (encoding) {
    case Encoding::kJson: {
      // One deep object must not stop the informer. The beginning of an event has the object's name and version.
      Json event =
          whole ? ReadJsonTop(line, kDeepest, UnreadOf(resource_, 1)) : ReadJsonHead(line.substr(0, kHead), kDeepest);
      const auto object = event.is_object() ? event.find("object") : event.end();
      if (!event.is_object() || object == event.end() || !object->is_object()) {
        NoEvent(line, &actions);
        break;
      }
      Tell(TextField(event, "type"), whole, {.kind = Kind::kPut, .object = std::move(*object)}, &actions);
      break;
    }
    case Encoding::kProtobuf: {
      const auto event = ReadProtobufEvent(line, whole);
      if (event.ok()) {
        Tell(std::string(event->type), whole, {.kind = Kind::kPut, .protobuf = event->object}, &actions);
      } else {
        NoEvent(line, &actions);
      }
      break;
    }
  }
  return actions;
}

void InformerState::NoEvent(std::string_view line, Actions* actions) {
  ListAnew();
  Fail(absl::FailedPreconditionError(fmt::format("a line of the watch is not an event: {}", Quoted(line))), true, false,
       actions);
}

void InformerState::Tell(const std::string& type, bool whole, InformerAction put, Actions* actions) {
  const ObjectView object = put.View();
  if (type == "ERROR") {
    const int code = object.Int("code").value_or(500);
    ListAnew();
    Fail(ErrorOf(code, StatusText(object), "the watch"), /*say=*/code != kExpired || failures_ > 0,
         /*at_once=*/code == kExpired, actions);
    return;
  }
  const Identity identity = IdentityOf(object);
  ++lines_;
  if (!whole && type != "DELETED") LeaveOut(identity, actions);
  if (whole && (type == "ADDED" || type == "MODIFIED")) Put(identity, std::move(put), actions);
  if (type == "DELETED") Gone(identity, actions);
  if (listing_ && type == "BOOKMARK") {
    if (object.Part("metadata").Entry("annotations", kEndOfInitial) != "true" || identity.version.empty()) {
      return GoByPages(/*always=*/true, actions);  // the server did not understand that a stream was asked for
    }
    Complete(identity.version, actions);
  }
  if (listing_) return;  // the objects of a stream come in any order of versions
  if (!identity.version.empty()) version_ = identity.version;
  failures_ = 0;
  said_ = false;
}

void InformerState::GoByPages(bool always, Actions* actions) {
  if (always) streams_ = false;
  paged_ = true;
  ListAnew();
  Go(actions);
}

InformerState::Actions InformerState::Ended(const Status& status, Duration lived) {
  Actions actions;
  if (listing_) {
    StreamEnded(status, &actions);
    return actions;
  }
  if (lived >= kGoodLife) failures_ = 0;
  if (absl::IsOutOfRange(status)) {
    ListAnew();
    Fail(status, /*say=*/failures_ > 0, /*at_once=*/true, &actions);
  } else if (lines_ > 0) {
    Go(&actions);  // servers end each watch after a while, also with an error
  } else {
    Fail(status, /*say=*/!status.ok(), /*at_once=*/false, &actions);
  }
  return actions;
}

void InformerState::StreamEnded(const Status& status, Actions* actions) {
  if (IsLeftOut(status, actions)) return;
  if (lines_ == 0 && absl::IsInvalidArgument(status)) return GoByPages(/*always=*/true, actions);
  if (lines_ > 0) return GoByPages(/*always=*/false, actions);
  ListAnew();
  Fail(status.ok() ? absl::UnavailableError("the watch ended without the list that it was asked for") : status,
       /*say=*/true, /*at_once=*/absl::IsOutOfRange(status), actions);
}

}  // namespace muster::controller
