// SPDX-License-Identifier: Apache-2.0
// System calls that an old kernel, a sandbox or a seccomp profile may lack. The error is ENOSYS where the call is
// unknown, and EPERM where a profile forbids it. Both are handled alike, and the message names the call.
//
// Thread-safe.
#pragma once

#include <string_view>

#include "base/status.h"

namespace muster {

// Whether `error` says that the system does not offer the operation. Kernels, file systems (FUSE, NFS, CIFS, 9p) and
// sandboxes use different errors for this. Only for calls that the caller can do without.
bool IsNotOffered(int error);

// "<what>: <call>: <strerror>". For ENOSYS and EPERM it adds whether the kernel or a profile is the reason, and the
// code is FailedPrecondition, since a retry fails again. Other errors have the code of ErrnoStatus.
Status CallStatus(int error, std::string_view call, std::string_view what);

// Status for an error of pthread_create or std::thread. glibc 2.34 and newer start threads by clone3(2) and fall back
// to clone(2) only on ENOSYS. If a profile answers EPERM, no thread can start, and the message says so.
Status ThreadStatus(int error, std::string_view what);

// OK unless a seccomp profile forbids clone3(2). Call it before using a library that does not report failed thread
// starts: gRPC corrupts its memory then. One system call.
Status CheckThreads(std::string_view what);

}  // namespace muster
