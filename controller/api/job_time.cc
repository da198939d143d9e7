// SPDX-License-Identifier: Apache-2.0
#include "controller/api/job_time.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/iso_time.h"
#include "controller/api/lenient.h"

namespace muster::controller {
namespace {

using std::chrono::milliseconds;

Duration SecondsField(const Json& object, std::string_view name) {
  const Json* value = FindField(object, std::string(name).c_str());
  if (value == nullptr || !value->is_number()) return {};
  const double seconds = value->get<double>();
  if (!(seconds >= 0 && seconds <= kMostSecondsSpent)) return {};
  return milliseconds(std::llround(seconds * 1000));
}

TimeSpent ReadSpent(const Json& object) {
  TimeSpent spent{};
  for (size_t use = 0; use < kTimeUses; ++use)
    spent[use] = SecondsField(object, TimeUseName(static_cast<TimeUse>(use)));
  return spent;
}

void PutSeconds(Json& object, std::string_view name, Duration time) {
  const auto millis = time / milliseconds(1);
  if (millis > 0) object[std::string(name)] = static_cast<double>(millis) / 1000;
}

void PutSpent(Json& object, const TimeSpent& spent) {
  for (size_t use = 0; use < kTimeUses; ++use) PutSeconds(object, TimeUseName(static_cast<TimeUse>(use)), spent[use]);
}

}  // namespace

Duration Bounded(Duration time) {
  return std::clamp<Duration>(time, Duration{}, std::chrono::seconds(static_cast<int64_t>(kMostSecondsSpent)));
}

TimeSpent AgentsTime(const JobTime& time) {
  TimeSpent all = time.earlier;
  for (size_t use = 0; use < kTimeUses; ++use) all[use] = Bounded(all[use] + time.run.spent[use]);
  return all;
}

Json WriteJobTime(const JobTime& time) {
  const TimeSpent all = AgentsTime(time);
  Json seconds = Json::object(), run = Json::object();
  PutSeconds(seconds, "initializers", time.initializers);
  PutSeconds(seconds, "pods", time.pods);
  PutSeconds(seconds, "suspended", time.suspended);
  PutSpent(seconds, all);
  PutSpent(run, time.run.spent);
  Json object = {{"since", IsoMicroTime(time.since)},
                 {"seconds", std::move(seconds)},
                 {"run",
                  {{"pod", time.pod},
                   {"since", IsoMicroTime(WallTime(milliseconds(time.run.began_unix_ms)))},
                   {"seconds", std::move(run)}}}};
  if (const auto goodput = GoodputOf(all)) object["percentage"] = static_cast<int>(std::floor(100 * *goodput));
  return object;
}

std::optional<JobTime> ReadJobTime(const Json& object) {
  const Json& run = MapField(object, "run");
  const auto since = TimeField(object, "since"), began = TimeField(run, "since");
  if (!since || !began) return std::nullopt;
  const Json& seconds = MapField(object, "seconds");
  JobTime time;
  time.pod = TextField(run, "pod");
  time.since = *since;
  time.initializers = SecondsField(seconds, "initializers");
  time.pods = SecondsField(seconds, "pods");
  time.suspended = SecondsField(seconds, "suspended");
  time.run.began_unix_ms = std::chrono::duration_cast<milliseconds>(began->time_since_epoch()).count();
  time.run.spent = ReadSpent(MapField(run, "seconds"));
  const TimeSpent all = ReadSpent(seconds);
  for (size_t use = 0; use < kTimeUses; ++use) {
    time.earlier[use] = std::max(Duration{}, all[use] - time.run.spent[use]);
  }
  return time;
}

}  // namespace muster::controller
