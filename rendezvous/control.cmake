# The I/O around the decisions: conductor, attendant, links, gRPC, names.
#
# protoc makes the messages; there is no generated gRPC code (grpc_queue.h says why). Warnings of generated code are not
# ours.
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

# What gRPC, protobuf and c-ares need at the link, as plain -l names: the linker takes shared libraries, or with -static
# the archives, in an order that suits both. (The imported targets of gRPCConfig name shared libraries only.)
pkg_check_modules(MUSTER_GRPC REQUIRED grpc++ protobuf libcares)
add_library(muster_grpc_libs INTERFACE)
target_link_libraries(muster_grpc_libs INTERFACE
  -Wl,--push-state,--as-needed ${MUSTER_GRPC_STATIC_LDFLAGS} -Wl,--pop-state)

muster_room(muster_control
  SOURCES wire.cc wire_decode.cc credentials.cc conductor.cc grpc_queue.cc grpc_port.cc coordinator.cc resolver.cc connect.cc local_link.cc
          grpc_channel.cc grpc_link.cc attendant.cc
  LINK muster_membership muster_base muster_proto muster_grpc_libs)
