// Names of the objects of a TrainJob, and the hashes in them. Pure.
//
// The Job controller names a pod <job>-<index>-<5 letters> and its host <job>-<index>; both are DNS labels of 63
// characters at most. kMostJobName leaves room for an index of seven digits, whatever the number of pods is: a Job
// keeps its name when that number changes. No name that JobSet accepts is longer.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::controller {

inline constexpr size_t kMostJobName = 55;

// <train job>-<replicated job>-<index>, shortened where it is longer than kMostJobName.
std::string JobName(std::string_view train_job, std::string_view replicated_job, int index);

// The host of pod `pod` of that Job, as the other pods of the TrainJob find it.
std::string HostName(std::string_view train_job, std::string_view replicated_job, int index, int pod,
                     std::string_view subdomain);

std::string Sha1Hex(std::string_view text);    // 40 characters: of JobSet's label job-key
std::string Sha256Hex(std::string_view text);  // 64 characters

}  // namespace muster::controller
