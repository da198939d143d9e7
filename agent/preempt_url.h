// SPDX-License-Identifier: Apache-2.0
// The part of preempt_notice.h that asks a metadata service.
#pragma once

#include "agent/preempt_notice.h"

namespace muster::agent {

// `url`: "http://...". As PreemptNotice::Await.
StatusOr<std::unique_ptr<PreemptNotice>> AwaitUrl(boost::asio::io_context& loop, const std::string& url,
                                                  Duration interval, PreemptNotice::Noticed noticed);

}  // namespace muster::agent
