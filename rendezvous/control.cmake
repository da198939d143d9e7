# SPDX-License-Identifier: Apache-2.0
# The I/O around the decisions: coordinator, attendant, links.
#
# protoc makes the messages; there is no generated gRPC code (net/grpc_queue.h says why).
set(MUSTER_PROTO_OUT ${CMAKE_BINARY_DIR}/rendezvous)
file(MAKE_DIRECTORY ${MUSTER_PROTO_OUT})
add_custom_command(
  OUTPUT ${MUSTER_PROTO_OUT}/rendezvous.pb.cc ${MUSTER_PROTO_OUT}/rendezvous.pb.h
  COMMAND protobuf::protoc --proto_path=${CMAKE_SOURCE_DIR} --cpp_out=${CMAKE_BINARY_DIR} rendezvous/rendezvous.proto
  DEPENDS ${CMAKE_SOURCE_DIR}/rendezvous/rendezvous.proto
  VERBATIM)
add_library(muster_proto STATIC ${MUSTER_PROTO_OUT}/rendezvous.pb.cc)
target_include_directories(muster_proto SYSTEM PUBLIC ${CMAKE_BINARY_DIR})
target_compile_options(muster_proto PRIVATE -w)

muster_room(muster_control
  SOURCES wire.cc wire_decode.cc coordinator.cc followers.cc coordinator_service.cc local_link.cc grpc_link.cc attendant.cc
  LINK muster_membership muster_net muster_base muster_proto)
