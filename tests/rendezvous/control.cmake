# SPDX-License-Identifier: Apache-2.0
# The control plane: wire, and whole conversations over loopback.
muster_test(wire_test QUICK SOURCES wire_test.cc LINK muster_control)
muster_test(coordinator_test SOURCES coordinator_service_test.cc LINK muster_control)
muster_test(attendant_test SOURCES attendant_test.cc LINK muster_control)
include(${CMAKE_SOURCE_DIR}/tests/bench/control.cmake)
