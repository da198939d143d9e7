# SPDX-License-Identifier: Apache-2.0
# Writes version.cc for the commit that is built, if its content changes. Runs in every build, because the commit may
# change without a new configuration. Variables: SOURCE_DIR, TEMPLATE, OUTPUT, PROJECT_VERSION.
execute_process(COMMAND git describe --always --dirty --abbrev=10 WORKING_DIRECTORY ${SOURCE_DIR}
                OUTPUT_VARIABLE MUSTER_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT MUSTER_COMMIT)
  set(MUSTER_COMMIT unknown)
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
