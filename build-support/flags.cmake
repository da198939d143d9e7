# SPDX-License-Identifier: Apache-2.0
# Compiler settings of all rooms, and functions that declare a room, a test and a fuzz target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")

option(MUSTER_TESTS "build the tests" ON)
option(MUSTER_FUZZ "build the fuzz targets (needs clang)" OFF)
set(MUSTER_SANITIZE "" CACHE STRING "address | thread: build everything with that sanitizer")

find_program(CCACHE ccache)
if(CCACHE)
  # Paths relative to the checkout: a fresh clone finds the objects that another clone has compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()

# Binaries contain no path of this machine, and are the same with and without ccache, which makes paths relative to the
# build folder and adds a flag of its own.
file(RELATIVE_PATH MUSTER_SOURCES ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
file(RELATIVE_PATH MUSTER_BUILT ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
set(MUSTER_PATHS -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=${MUSTER_SOURCES} -ffile-prefix-map=${CMAKE_BINARY_DIR}=./${MUSTER_BUILT}
                 -ffile-prefix-map=${CMAKE_BINARY_DIR}/= -ffile-prefix-map=./= -gno-record-gcc-switches)
if(CMAKE_SYSROOT)
  list(APPEND MUSTER_PATHS -ffile-prefix-map=${CMAKE_SYSROOT}/=/)
endif()
add_compile_options(-Wall -Wextra -Werror -Wnon-virtual-dtor -Woverloaded-virtual -Wno-missing-field-initializers
                    ${MUSTER_PATHS} -ffunction-sections -fdata-sections)
add_link_options(-Wl,--gc-sections)
# One thread runs the loop; others only post to it. Asio and fmt are compiled once, in base/asio.cc and base/fmt.cc.
add_compile_definitions(BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED
                        BOOST_ERROR_CODE_HEADER_ONLY SPDLOG_FMT_EXTERNAL)

if(MUSTER_SANITIZE STREQUAL "address")
  # The vptr check opens a pipe. At the descriptor limit, which tests reach, it reports valid objects as invalid.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=undefined
                      -fno-omit-frame-pointer -O1)
  add_link_options(-fsanitize=address,undefined)
elseif(MUSTER_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -O1 -Wno-tsan)
  add_link_options(-fsanitize=thread)
endif()

# At -Os GCC 12 warns that some optional values may be uninitialized.
set(MUSTER_COLD $<$<CONFIG:Release>:-Os> $<$<CONFIG:Release>:-Wno-maybe-uninitialized>)
set(MUSTER_UNOPTIMIZED -O0)
include(build-support/precompiled.cmake)

# A room: a static library whose headers are included from the source root ("base/log.h"). COLD: optimized for size,
# because its code runs rarely and the static binary is copied into every pod. JSON: most of its files include nlohmann's
# header, which takes a second to parse.
function(muster_room name)
  cmake_parse_arguments(ROOM "COLD;JSON" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ROOM_SOURCES})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  target_link_libraries(${name} PUBLIC ${ROOM_LINK})
  if(ROOM_COLD)
    target_compile_options(${name} PRIVATE ${MUSTER_COLD})
    muster_use_precompiled(${name} cold)
  elseif(ROOM_JSON)
    muster_use_precompiled(${name} json)
  else()
    muster_use_precompiled(${name} hot)
  endif()
endfunction()

# An interface library: what pkg-config names for the modules ARGN, and what these need, as plain -l names: the linker
# takes shared libraries, or archives with -static, in an order that works for both. (The imported targets of CMake's
# packages name shared libraries only.)
function(muster_libraries name)
  pkg_check_modules(${name} REQUIRED ${ARGN})
  add_library(${name} INTERFACE)
  target_link_libraries(${name} INTERFACE -Wl,--push-state,--as-needed ${${name}_STATIC_LDFLAGS} -Wl,--pop-state)
endfunction()

# A GoogleTest binary. It runs in the checkout's root: with a path of its files among the compiler flags ccache would
# miss in other clones. All cases are one ctest entry and one process, except those that APART names by GoogleTest's
# patterns ("*": all). These are entries of their own, because they fork, or set limits, signals or variables of the
# process. The output of a failed entry ends with the failed cases; after a crash or a hang, with the case that ran.
# QUICK: the common entry has the label `quick`: pure cases, without children, network and waiting. All other entries
# have the label `full`. Test code is not optimized, the tested code is. HOT: optimized, for a test that computes much.
# JSON: as for a room.
function(muster_test name)
  cmake_parse_arguments(TEST "HOT;JSON;QUICK" "TIMEOUT;APART" "SOURCES;LINK" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 300)
  endif()
  set(cores 1)  # of the TEST_JOBS that `make test` runs at a time
  if(TEST_HOT)
    set(cores 2)
  endif()
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE ${TEST_LINK} GTest::gmock GTest::gtest_main)
  if(TEST_HOT)
    muster_use_precompiled(${name} hot)
  else()
    target_compile_options(${name} PRIVATE ${MUSTER_UNOPTIMIZED})
    if(TEST_JSON)
      muster_use_precompiled(${name} json_test)
    else()
      muster_use_precompiled(${name} test)
    endif()
  endif()
  if(TEST_APART)
    include(GoogleTest)
    gtest_discover_tests(${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} DISCOVERY_TIMEOUT 60 TEST_FILTER ${TEST_APART}
                         PROPERTIES TIMEOUT ${TEST_TIMEOUT} PROCESSORS ${cores} LABELS full)
  endif()
  if(NOT TEST_APART STREQUAL "*")
    add_test(NAME ${name} COMMAND ${name} --gtest_filter=-${TEST_APART} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${TEST_TIMEOUT} PROCESSORS ${cores}
                         LABELS $<IF:$<BOOL:${TEST_QUICK}>,quick,full>)
  endif()
endfunction()

# A libFuzzer target; its corpus is tests/fuzz/corpus/<name>. Without MUSTER_FUZZ it is a part of fuzz_seeds_test, where its
# entry has the target's name. SOURCES: one file.
function(muster_fuzz name)
  cmake_parse_arguments(FUZZ "" "" "SOURCES;LINK" ${ARGN})
  if(MUSTER_FUZZ)
    add_executable(${name} ${FUZZ_SOURCES})
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    add_library(${name} OBJECT ${FUZZ_SOURCES})
    target_compile_definitions(${name} PRIVATE LLVMFuzzerTestOneInput=${name})
    target_compile_options(${name} PRIVATE ${MUSTER_UNOPTIMIZED})
    set_property(GLOBAL APPEND PROPERTY MUSTER_FUZZ_TARGETS ${name})
    set_property(GLOBAL APPEND PROPERTY MUSTER_FUZZ_ROOMS ${FUZZ_LINK})
  endif()
  target_link_libraries(${name} PRIVATE ${FUZZ_LINK})
endfunction()
