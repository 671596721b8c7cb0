# Run at every build: writes the commit of the sources to a header, touching it only on change.
execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=12 --exclude=*
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit unknown)
endif()
set(text "#pragma once\n#define DIFFTAPE_COMMIT \"${commit}\"\n")
set(header ${BINARY_DIR}/generated/commit.h)
if(EXISTS ${header})
  file(READ ${header} before)
endif()
if(NOT text STREQUAL "${before}")
  file(WRITE ${header} "${text}")
endif()
