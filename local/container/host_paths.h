// SPDX-License-Identifier: Apache-2.0
// The paths of this machine that volumes of the type hostPath name, checked as the kubelet does. Blocking.
// Source: Kubernetes, pkg/volume/hostpath/host_path.go (checkTypeInternal).
#pragma once

#include "base/status.h"
#include "local/pod/program.h"

namespace muster::local {

// InvalidArgument: the path does not exist, though its type does not let it be created, or is of another type; names
// the field and the remedy. Unlike under a container runtime, a path without a type has to exist, too.
Status CheckHostPath(const HostPath& path);

// The same, after it has created the empty file of FileOrCreate if it is missing.
Status MakeHostPath(const HostPath& path);

}  // namespace muster::local
