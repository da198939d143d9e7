# SPDX-License-Identifier: Apache-2.0
# Cross compilation for arm64, with Debian's compiler and the headers and libraries of setup-arm64. protoc and its plugin
# run on this machine, and so do the tests, by with-arm64.
execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/setup-arm64 OUTPUT_VARIABLE MUSTER_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++-12)
set(CMAKE_SYSROOT ${MUSTER_ROOT})

set(CMAKE_FIND_ROOT_PATH ${MUSTER_ROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

set(ENV{PKG_CONFIG_SYSROOT_DIR} ${MUSTER_ROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${MUSTER_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${MUSTER_ROOT}/usr/share/pkgconfig)
