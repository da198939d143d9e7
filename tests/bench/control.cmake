# SPDX-License-Identifier: Apache-2.0
# Load generator of the rendezvous; `make bench` runs it.
add_executable(rendezvous_load ${CMAKE_CURRENT_LIST_DIR}/rendezvous_load.cc)
target_link_libraries(rendezvous_load PRIVATE muster_control)
