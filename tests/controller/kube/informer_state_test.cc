// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/client/informer_state.h"

#include <gmock/gmock.h>

#include <optional>

#include "base/text.h"
#include "tests/controller/api/yaml_of.h"
#include "tests/controller/kube/protobuf_writer.h"

namespace muster::controller {
namespace {

using Kind = InformerAction::Kind;
using testing::HasSubstr;

// One word for each action: "put a@1", "gone b", "list", "list next", "stream", "watch 7", "pause 500", "synced",
// "say ...".
std::string Shown(const InformerState::Actions& actions) {
  std::vector<std::string> words;
  for (const InformerAction& action : actions) {
    switch (action.kind) {
      case Kind::kPut:
        words.push_back(fmt::format("put {}@{}", action.View().Part("metadata").Text("name"),
                                    action.View().Part("metadata").Text("resourceVersion")));
        break;
      case Kind::kGone:
        words.push_back(fmt::format("gone {}/{}", action.gone.ns, action.gone.name));
        break;
      case Kind::kSynced:
        words.push_back("synced");
        break;
      case Kind::kSay:
        words.push_back(fmt::format("say {}", action.text));
        break;
      case Kind::kList:
        words.push_back(action.text.empty() ? "list" : fmt::format("list {}", action.text));
        break;
      case Kind::kStream:
        words.push_back("stream");
        break;
      case Kind::kWatch:
        words.push_back(fmt::format("watch {}", action.text));
        break;
      case Kind::kPause:
        words.push_back(
            fmt::format("pause {}", std::chrono::duration_cast<std::chrono::milliseconds>(action.pause).count()));
        break;
    }
  }
  return Join(words, ", ");
}

Json Object(const std::string& name, const std::string& version) {
  return {{"kind", "Pod"}, {"metadata", {{"namespace", "ns"}, {"name", name}, {"resourceVersion", version}}}};
}
// A page of a list. `objects`: name@resourceVersion, such as "a@1 b@2".
Json Page(std::string_view objects, const std::string& version, const std::string& more = "") {
  Json page = {{"kind", "PodList"}, {"apiVersion", "v1"}, {"metadata", {{"resourceVersion", version}}}};
  if (!more.empty()) page["metadata"]["continue"] = more;
  page["items"] = Json::array();
  for (std::string_view object : Words(objects)) {
    const size_t at = object.find('@');
    Json item = Object(std::string(object.substr(0, at)), std::string(object.substr(at + 1)));
    item.erase("kind");
    page["items"].push_back(std::move(item));
  }
  return page;
}
std::string Event(std::string_view type, const std::string& name, const std::string& version) {
  return WriteJson(Json{{"type", type}, {"object", Object(name, version)}});
}
std::string Bookmark(const std::string& version) {
  return fmt::format(R"({{"type":"BOOKMARK","object":{{"kind":"Pod","metadata":{{"resourceVersion":"{}"}}}}}})",
                     version);
}
std::string EndOfInitial(const std::string& version) {
  return fmt::format(
      R"({{"type":"BOOKMARK","object":{{"kind":"Pod","metadata":{{"resourceVersion":"{}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}}})",
      version);
}
std::string Error(int code) {
  return fmt::format(R"({{"type":"ERROR","object":{{"kind":"Status","code":{},"reason":"Expired","message":"m"}}}})",
                     code);
}
// Passes a line to `state`, as JSON or as a frame of protobuf with the same event.
InformerState::Actions Pass(const std::string& line, Encoding encoding, InformerState* state) {
  if (encoding == Encoding::kJson) return state->Line(line);
  Json event = Json::parse(line);
  event["object"]["apiVersion"] = "v1";
  static std::string frame;  // outlives the actions
  frame = protobuf::Event(event["type"].get<std::string>(), protobuf::Object(event["object"]));
  return state->Line(frame, true, encoding);
}
const Status kExpired = absl::OutOfRangeError("expired");
const Status kDown = absl::UnavailableError("down");

const Status kRefused = absl::InvalidArgumentError("sendInitialEvents is forbidden");

// An informer of a server that has no streams. It lists.
InformerState Paged(const Resource& resource = kPods) {
  InformerState state(resource);
  EXPECT_EQ(Shown(state.Begin()), "stream");
  EXPECT_EQ(Shown(state.Ended(kRefused, {})), "list");
  return state;
}
// It knows a@1 and b@2 and watches from version 10.
InformerState InStep() {
  InformerState state = Paged();
  EXPECT_EQ(Shown(state.Listed(Page("a@1 b@2", "10"))), "put a@1, put b@2, synced, watch 10");
  return state;
}

TEST(InformerState, ListsPageByPageThenWatches) {
  InformerState state = Paged();
  EXPECT_FALSE(state.synced());
  EXPECT_EQ(Shown(state.Listed(Page("a@1 b@2", "10", "next"))), "put a@1, put b@2, list next");
  EXPECT_FALSE(state.synced());
  EXPECT_EQ(Shown(state.Listed(Page("c@3", "10"))), "put c@3, synced, watch 10");
  EXPECT_TRUE(state.synced());
}

TEST(InformerState, AnEmptyListIsOne) {
  InformerState state = Paged();
  EXPECT_EQ(Shown(state.Listed(Json{{"metadata", {{"resourceVersion", "7"}}}, {"items", nullptr}})), "synced, watch 7");
}

TEST(InformerState, ItemsSayWhatTheyAre) {
  InformerState state = Paged();
  const auto actions = state.Listed(Page("a@1", "10"));
  EXPECT_EQ(actions.front().object["kind"], "Pod");
  EXPECT_EQ(actions.front().object["apiVersion"], "v1");
}

TEST(InformerState, FollowsTheWatch) {
  const struct {
    std::string line;
    std::string_view actions;
  } rows[] = {
      {Event("ADDED", "c", "11"), "put c@11"},
      {Event("MODIFIED", "a", "12"), "put a@12"},
      {Event("MODIFIED", "a", "12"), ""},  // reported already
      {Event("DELETED", "b", "13"), "gone ns/b"},
      {Event("DELETED", "b", "13"), ""},
      {Event("DELETED", "unknown", "14"), ""},
      {Event("ADDED", "b", "15"), "put b@15"},
      {Bookmark("20"), ""},
      {Event("NEWTYPE", "x", "21"), ""},
      {Event("ADDED", "", "22"), "say pods: an object without a name is left out"},
  };
  for (const Encoding encoding : {Encoding::kJson, Encoding::kProtobuf}) {
    InformerState state = InStep();
    for (const auto& row : rows) EXPECT_EQ(Shown(Pass(row.line, encoding, &state)), row.actions) << row.line;
    EXPECT_EQ(Shown(state.Ended(absl::OkStatus(), {})), "watch 22");
  }
}

TEST(InformerState, GoesOnWhereAWatchWasCut) {
  InformerState state = InStep();
  state.Line(Event("ADDED", "c", "11"));
  EXPECT_EQ(Shown(state.Ended(kDown, {})), "watch 11");
  state.Line(Bookmark("30"));
  EXPECT_EQ(Shown(state.Ended(absl::OkStatus(), {})), "watch 30");
}

// A watch that ended without events is not started again at once.
TEST(InformerState, PausesAfterAWatchThatBroughtNothing) {
  InformerState state = InStep();
  EXPECT_EQ(Shown(state.Ended(absl::OkStatus(), {})), "pause 500");
  EXPECT_EQ(Shown(state.Resume()), "watch 10");
  EXPECT_EQ(Shown(state.Ended(kDown, {})), "say pods: down; trying again, pause 1000");
  EXPECT_EQ(Shown(state.Resume()), "watch 10");
  EXPECT_EQ(Shown(state.Ended(kDown, {})), "pause 2000");
  state.Resume();
  EXPECT_EQ(Shown(state.Ended(kDown, std::chrono::seconds(9))), "pause 500") << "it was well for a while";
  state.Resume();
  state.Line(Event("ADDED", "c", "11"));
  EXPECT_EQ(Shown(state.Ended(kDown, {})), "watch 11");
  EXPECT_EQ(Shown(state.Ended(absl::OkStatus(), {})), "pause 500");
}

TEST(InformerState, ListsAgainWhereTheVersionIsTooOld) {
  for (const auto by_line :
       {std::optional<Encoding>(), std::optional(Encoding::kJson), std::optional(Encoding::kProtobuf)}) {
    InformerState state = InStep();
    const auto end = [&] { return by_line ? Pass(Error(410), *by_line, &state) : state.Ended(kExpired, {}); };
    EXPECT_EQ(Shown(end()), "list");
    EXPECT_EQ(Shown(state.Listed(Page("a@1 c@30", "40", "next"))), "put c@30, list next");
    EXPECT_EQ(Shown(state.Listed(Page("d@31", "40"))), "put d@31, gone ns/b, watch 40");
    // The second 410 in a row counts as an outage.
    EXPECT_EQ(Shown(end()).substr(0, 10), "say pods: ");
    EXPECT_EQ(Shown(state.Resume()), "list");
  }
}

TEST(InformerState, ListsAgainAfterAnyError) {
  const struct {
    std::string line;
    std::string_view told;
  } rows[] = {
      {Error(500), "say pods: the watch: 500 'Expired': 'm'; trying again, pause 500"},
      {R"({"type":"ERROR","object":{}})", "say pods: the watch: 500: '{}'; trying again, pause 500"},
      {R"({"type":"ERROR","object":{"code":"x"}})",
       R"(say pods: the watch: 500: '{"code":"x"}'; trying again, pause 500)"},
      {"{", "say pods: a line of the watch is not an event: '{'; trying again, pause 500"},
      {"7", "say pods: a line of the watch is not an event: '7'; trying again, pause 500"},
      {R"({"type":"ADDED"})",
       R"(say pods: a line of the watch is not an event: '{"type":"ADDED"}'; trying again, pause 500)"},
      {R"({"type":"ADDED","object":[]})",
       R"(say pods: a line of the watch is not an event: '{"type":"ADDED","object":[]}'; trying again, pause 500)"},
  };
  for (const auto& row : rows) {
    InformerState state = InStep();
    EXPECT_EQ(Shown(state.Line(row.line)), row.told);
    EXPECT_EQ(Shown(state.Resume()), "list");
    EXPECT_EQ(Shown(state.Listed(Page("b@9", "50"))), "put b@9, gone ns/a, say pods: up to date again, watch 50");
  }
}

TEST(InformerState, ListsAgainAfterAFrameThatIsNoEvent) {
  const std::string pod = protobuf::Object(YamlOf("{apiVersion: v1, kind: Pod, metadata: {name: p}}"));
  for (const std::string& frame : {std::string("{}"), protobuf::Event("ADDED", "k8s"),
                                   protobuf::Event("ADDED", protobuf::Envelope("v1", "Secret", "")),
                                   protobuf::Event("ADDED", pod).substr(0, 20)}) {
    InformerState state = InStep();
    EXPECT_THAT(Shown(state.Line(frame, true, Encoding::kProtobuf)), HasSubstr("a line of the watch is not an event"));
    EXPECT_EQ(Shown(state.Resume()), "list");
  }
  InformerState state = InStep();  // a frame of an impossible length
  EXPECT_THAT(Shown(state.Line("", false, Encoding::kProtobuf)), HasSubstr("a line of the watch is not an event"));
}

TEST(InformerState, ADeepObjectIsPutWithoutItsDepth) {
  InformerState state = InStep();
  const std::string deep = fmt::format("{}1{}", std::string(5000, '['), std::string(5000, ']'));
  const auto actions = state.Line(fmt::format(
      R"({{"type":"ADDED","object":{{"metadata":{{"namespace":"ns","name":"d","resourceVersion":"60"}},"x":{}}}}})",
      deep));
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(actions[0].kind, InformerAction::Kind::kPut);
  EXPECT_LT(WriteJson(actions[0].object).size(), 600U);
}

TEST(InformerState, AnObjectWhoseEventIsTooLongIsNamed) {
  InformerState state = InStep();
  const auto beginning = [](std::string_view type, int version) {  // as an API server writes it
    return fmt::format(
        R"({{"type":"{}","object":{{"metadata":{{"name":"a","namespace":"ns","resourceVersion":"{}"}},"spec":{{"x":")",
        type, version);
  };
  EXPECT_EQ(Shown(state.Line(beginning("MODIFIED", 11), false)),
            "say pods: ns/a is left out while it is as long as it is now");
  EXPECT_EQ(Shown(state.Line(beginning("MODIFIED", 12), false)), "");
  EXPECT_EQ(Shown(state.Ended(absl::OkStatus(), {})), "watch 12");
  EXPECT_EQ(Shown(state.Line(Event("MODIFIED", "a", "13"))), "put a@13");
  EXPECT_EQ(Shown(state.Line(beginning("DELETED", 14), false)), "gone ns/a");
  // A beginning that names no object leads to a new list, as any line that is not an event does.
  EXPECT_THAT(Shown(state.Line("{\"type\":\"ADDED\"", false)), HasSubstr("a line of the watch is not an event"));
}

TEST(InformerState, AnObjectWhoseFrameIsTooLongIsNamed) {
  InformerState state = InStep();
  const auto beginning = [](std::string_view type, const std::string& version) {
    Json pod = Object("a", version);
    pod["apiVersion"] = "v1";
    pod["metadata"]["annotations"]["x"] = std::string(1000, 'x');
    return protobuf::Event(type, protobuf::Object(pod)).substr(0, 800);
  };
  EXPECT_EQ(Shown(state.Line(beginning("MODIFIED", "11"), false, Encoding::kProtobuf)),
            "say pods: ns/a is left out while it is as long as it is now");
  EXPECT_EQ(Shown(state.Line(beginning("DELETED", "14"), false, Encoding::kProtobuf)), "gone ns/a");
  EXPECT_EQ(Shown(state.Ended(absl::OkStatus(), {})), "watch 14");
}

TEST(InformerState, ListsFromTheStartWhereAContinuationIsTooOld) {
  InformerState state = Paged();
  state.Listed(Page("a@1", "10", "next"));
  EXPECT_EQ(Shown(state.Listed(kExpired)), "list");
  EXPECT_EQ(Shown(state.Listed(Page("b@2", "20", "next"))), "put b@2, list next");
  EXPECT_THAT(Shown(state.Listed(kExpired)), HasSubstr("pause 1000"));
  EXPECT_EQ(Shown(state.Resume()), "list");
  EXPECT_EQ(Shown(state.Listed(Page("b@2", "30"))), "gone ns/a, say pods: up to date again, synced, watch 30");
}

TEST(InformerState, AFailedPageIsAskedForAgain) {
  InformerState state = Paged();
  state.Listed(Page("a@1", "10", "next"));
  EXPECT_EQ(Shown(state.Listed(kDown)), "say pods: down; trying again, pause 500");
  EXPECT_EQ(Shown(state.Resume()), "list next");
  EXPECT_EQ(Shown(state.Listed(kDown)), "pause 1000");
  EXPECT_EQ(Shown(state.Resume()), "list next");
  EXPECT_EQ(Shown(state.Listed(Page("b@2", "10"))), "put b@2, say pods: up to date again, synced, watch 10");
}

TEST(InformerState, PausesUpToThirtySeconds) {
  InformerState state = Paged();
  for (int pause : {500, 1000, 2000, 4000, 8000, 16000, 30000, 30000}) {
    EXPECT_THAT(Shown(state.Listed(kDown)), HasSubstr(fmt::format("pause {}", pause)));
    state.Resume();
  }
}

TEST(InformerState, ListsWhatIsNoListAgain) {
  for (const Json& page : {Json(), Json(7), Json::array(), Json::object(), Json{{"metadata", 7}},
                           Json{{"metadata", {{"resourceVersion", 7}}}}, Json{{"metadata", Json::object()}},
                           Json{{"metadata", {{"resourceVersion", "7"}}}, {"items", 7}}}) {
    InformerState state = Paged();
    EXPECT_THAT(Shown(state.Listed(page)), HasSubstr("the answer is not a list of objects")) << page;
    EXPECT_EQ(Shown(state.Resume()), "list");
  }
  InformerState state = Paged();
  const Json odd = {{"metadata", {{"resourceVersion", "7"}}}, {"items", {7, Json::array(), Object("a", "1")}}};
  EXPECT_EQ(Shown(state.Listed(odd)),
            "say pods: an object without a name is left out, say pods: an object without a "
            "name is left out, put a@1, synced, watch 7");
}

TEST(InformerState, AListIsTheBeginningOfAWatch) {
  for (const Encoding encoding : {Encoding::kJson, Encoding::kProtobuf}) {
    InformerState state(kPods);
    EXPECT_EQ(Shown(state.Begin()), "stream");
    const struct {
      std::string line;
      std::string_view actions;
      bool synced = false;
    } rows[] = {
        {Event("ADDED", "a", "9"), "put a@9"},
        {Event("ADDED", "b", "2"), "put b@2"},  // in any order of versions
        {Event("DELETED", "a", "11"), "gone ns/a"},
        {Event("ADDED", "c", "3"), "put c@3"},
        {EndOfInitial("12"), "synced", true},
        {Event("MODIFIED", "c", "13"), "put c@13", true},
        {EndOfInitial("14"), "", true},
    };
    for (const auto& row : rows) {
      EXPECT_EQ(Shown(Pass(row.line, encoding, &state)), row.actions) << row.line;
      EXPECT_EQ(state.synced(), row.synced) << row.line;
    }
    EXPECT_EQ(Shown(state.Ended(kDown, {})), "watch 14");
    EXPECT_EQ(Shown(Pass(Error(410), encoding, &state)), "stream");
  }
}

TEST(InformerState, WhatAStreamDoesNotBringIsGone) {
  InformerState state(kPods);
  state.Begin();
  for (const std::string& line : {Event("ADDED", "a", "1"), Event("ADDED", "b", "2"), EndOfInitial("10")}) {
    state.Line(line);
  }
  EXPECT_EQ(Shown(state.Ended(kExpired, {})), "stream");
  EXPECT_EQ(Shown(state.Line(Event("ADDED", "b", "2"))), "") << "reported already";
  EXPECT_EQ(Shown(state.Line(EndOfInitial("40"))), "gone ns/a");
  EXPECT_EQ(Shown(state.Ended(absl::OkStatus(), {})), "watch 40");
}

TEST(InformerState, ALongObjectOfAStreamKeepsItsLastState) {
  InformerState state(kPods);
  state.Begin();
  state.Line(Event("ADDED", "a", "1"));
  state.Line(EndOfInitial("10"));
  EXPECT_EQ(Shown(state.Ended(kExpired, {})), "stream");
  EXPECT_EQ(Shown(state.Line(Event("MODIFIED", "a", "30").substr(0, 90), false)),
            "say pods: ns/a is left out while it is as long as it is now");
  EXPECT_EQ(Shown(state.Line(EndOfInitial("40"))), "");
}

TEST(InformerState, GoesByPagesWhereAServerHasNoStreams) {
  const struct {
    std::string what, line;
    Status end;
  } rows[] = {
      {"refused", "", kRefused},
      {"not understood: a plain bookmark", Bookmark("20"), absl::OkStatus()},
      {"a mark without a version", EndOfInitial(""), absl::OkStatus()},
  };
  for (const auto& row : rows) {
    InformerState state(kPods);
    state.Begin();
    const auto refuse = [&] { return row.line.empty() ? state.Ended(row.end, {}) : state.Line(row.line); };
    EXPECT_EQ(Shown(refuse()), "list") << row.what;
    EXPECT_EQ(Shown(state.Listed(Page("a@1", "10"))), "put a@1, synced, watch 10") << row.what;
    EXPECT_EQ(Shown(state.Ended(kExpired, {})), "list") << row.what << ": it is not asked again";
  }
}

TEST(InformerState, GoesByPagesAfterAStreamThatWasCut) {
  InformerState state(kPods);
  state.Begin();
  state.Line(Event("ADDED", "a", "1"));
  EXPECT_EQ(Shown(state.Ended(kDown, std::chrono::seconds(9))), "list");
  EXPECT_EQ(Shown(state.Listed(Page("b@2", "10"))), "put b@2, gone ns/a, synced, watch 10");
  EXPECT_EQ(Shown(state.Ended(kExpired, {})), "stream") << "the server has streams";
}

TEST(InformerState, AStreamThatBringsNothingIsAskedForAgainThenPages) {
  for (const Status& end : {kDown, absl::OkStatus(), kExpired}) {
    InformerState state(kPods);
    state.Begin();
    const std::string first = Shown(state.Ended(end, {}));
    EXPECT_THAT(first, HasSubstr("say pods: "));
    EXPECT_THAT(first, HasSubstr(absl::IsOutOfRange(end) ? "stream" : "pause 500"));
    if (!absl::IsOutOfRange(end)) {
      EXPECT_EQ(Shown(state.Resume()), "stream");
    }
    EXPECT_EQ(Shown(state.Ended(end, {})), "pause 1000");
    EXPECT_EQ(Shown(state.Resume()), "list");
    EXPECT_EQ(Shown(state.Listed(Page("", "10"))), "say pods: up to date again, synced, watch 10");
  }
}

TEST(InformerState, SaysWhatToDoAboutAMissingKind) {
  InformerState state = Paged(kTrainJobs);
  EXPECT_EQ(Shown(state.Listed(absl::NotFoundError("404"))),
            "say trainjobs: 404; the cluster does not serve that kind: apply its CustomResourceDefinition; trying "
            "again, pause 500");
}

TEST(InformerState, AKindThatTheServerDoesNotKnow) {
  for (const bool optional : {false, true}) {
    Resource resource = kJobSets;
    resource.optional = optional;
    InformerState state = Paged(resource);
    const std::string said = Shown(state.Listed(absl::NotFoundError("404")));
    EXPECT_EQ(state.synced(), optional);
    EXPECT_THAT(said, HasSubstr(optional ? "synced" : "pause"));
    InformerState streaming(resource);
    streaming.Begin();
    EXPECT_EQ(Shown(streaming.Ended(absl::NotFoundError("404"), {})), said);
    EXPECT_EQ(streaming.synced(), optional);
  }
}

}  // namespace
}  // namespace muster::controller
