# Runs at every build: writes the commit of the sources to a header, which is touched only on
# change. An archive (`git archive`) has no history, so git writes the commit to
# cmake/archived_commit.txt.
set(commit unknown)
if(EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
else()
  file(STRINGS ${SOURCE_DIR}/cmake/archived_commit.txt described REGEX "^[0-9a-f]+$")
endif()
if(described)
  set(commit ${described})
endif()
set(text "#pragma once\n#define DIFFTAPE_COMMIT \"${commit}\"\n")
set(header ${BINARY_DIR}/generated/commit.h)
if(EXISTS ${header})
  file(READ ${header} before)
endif()
if(NOT text STREQUAL "${before}")
  file(WRITE ${header} "${text}")
endif()
