// What an old kernel, a sandbox or a seccomp profile lacks: ENOSYS where the call is not known, EPERM where a profile
// that does not know it forbids it. Both are answered alike, and the user is told which call it was.
//
// Thread-safe.
#pragma once

#include <string_view>

#include "base/status.h"

namespace muster {

// The system does not have the operation: said in these ways by kernels, by file systems (FUSE, NFS, CIFS, 9p), and by
// sandboxes that deny a call. Of a call that can be done without.
bool IsNotOffered(int error);

// "<what>: <call>: <strerror>", for ENOSYS and EPERM with what lacks the call, as FailedPrecondition: trying again
// gives the same. Other errors are ErrnoStatus's.
Status CallStatus(int error, std::string_view call, std::string_view what);

// For an error of pthread_create or std::thread. glibc 2.34 and newer start threads by clone3(2) and fall back to clone
// on ENOSYS alone: where a profile answers EPERM no thread starts, and this says so.
Status ThreadStatus(int error, std::string_view what);

// OK where threads can be started, as far as the profile is concerned. For libraries that do not say it: gRPC corrupts
// its memory. One system call.
Status CheckThreads(std::string_view what);

}  // namespace muster
