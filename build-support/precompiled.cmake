# SPDX-License-Identifier: Apache-2.0
# The headers that most files include, precompiled once for each set of flags. Off: the build shows missing #includes.
option(MUSTER_PRECOMPILE "precompile the headers that most files share" ON)

set(MUSTER_PRECOMPILED
    <algorithm> <chrono> <cstdint> <functional> <map> <memory> <optional> <set> <string> <string_view> <utility> <vector>
    <absl/status/statusor.h> <boost/asio/io_context.hpp> <boost/asio/post.hpp> <boost/asio/steady_timer.hpp>
    <fmt/format.h>)

# muster_precompiled_<kind>: an empty library; targets with the same flags use its precompiled headers.
function(muster_precompiled kind)
  if(NOT MUSTER_PRECOMPILE)
    return()
  endif()
  cmake_parse_arguments(KIND "" "" "OPTIONS;HEADERS;LINK" ${ARGN})
  set(source ${CMAKE_BINARY_DIR}/precompiled_${kind}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(muster_precompiled_${kind} STATIC ${source})
  target_link_libraries(muster_precompiled_${kind} PRIVATE ${KIND_LINK})
  target_compile_options(muster_precompiled_${kind} PRIVATE ${KIND_OPTIONS})
  target_include_directories(muster_precompiled_${kind} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  target_precompile_headers(muster_precompiled_${kind} PRIVATE ${MUSTER_PRECOMPILED} ${KIND_HEADERS})
endfunction()

function(muster_use_precompiled target kind)
  if(MUSTER_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM muster_precompiled_${kind})
  endif()
endfunction()

muster_precompiled(hot)
muster_precompiled(cold OPTIONS ${MUSTER_COLD})
muster_precompiled(json HEADERS <nlohmann/json.hpp> LINK nlohmann_json::nlohmann_json)
