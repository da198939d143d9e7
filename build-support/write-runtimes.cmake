# SPDX-License-Identifier: Apache-2.0
# Writes a C++ source of local/builtin_runtimes.h's kBuiltinRuntimes, from the YAML files of FOLDER:
# cmake -D FOLDER=... -D OUTPUT=... -P write-runtimes.cmake
file(GLOB files ${FOLDER}/*.yaml)
list(FILTER files EXCLUDE REGEX kustomization)
list(SORT files)
set(rows "")
foreach(file ${files})
  file(READ ${file} text)
  get_filename_component(name ${file} NAME_WLE)
  string(APPEND rows "    {\"${name}\", R\"yaml(${text})yaml\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"local/builtin_runtimes.h\"

namespace muster::local {
namespace {

const BuiltinRuntime kRuntimes[] = {
${rows}};

}  // namespace

const std::span<const BuiltinRuntime> kBuiltinRuntimes = kRuntimes;

}  // namespace muster::local
")
