// SPDX-License-Identifier: Apache-2.0
// Names of the objects of a TrainJob, and the hashes in them. Pure.
//
// The Job controller names a pod <job>-<index>-<5 letters> and its host <job>-<index>. Both must be DNS labels, 63
// characters at most. kMostJobName always leaves room for an index of seven digits, so that a Job keeps its name when
// the number of its pods changes. JobSet accepts no longer names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::controller {

inline constexpr size_t kMostJobName = 55;

// <train job>-<replicated job>-<index>, shortened to kMostJobName.
std::string JobName(std::string_view train_job, std::string_view replicated_job, int index);

// The host name of pod `pod` of that Job, for the other pods of the TrainJob.
std::string HostName(std::string_view train_job, std::string_view replicated_job, int index, int pod,
                     std::string_view subdomain);

std::string Sha1Hex(std::string_view text);    // 40 characters, for JobSet's label job-key
std::string Sha256Hex(std::string_view text);  // 64 characters

}  // namespace muster::controller
