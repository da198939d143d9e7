// One action of a decision, carried out on the API server. Loop thread only.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "controller/kube/api_client.h"
#include "controller/kube/train_job_cache.h"
#include "controller/reconcile/decide.h"

namespace muster::controller {

// OK: it is so now, by this call or an earlier one; `cache` knows it. FailedPrecondition: somebody else's object has
// the name that is needed; the message says whose it is. Aborted, Unavailable: another pass may succeed. Any other
// error is the server's refusal.
boost::asio::awaitable<Status> CarryOut(ApiClient& client, TrainJobCache& cache, const TrainJob& job,
                                        const Action& action);

}  // namespace muster::controller
