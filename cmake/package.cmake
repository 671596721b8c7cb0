# The Debian package of the component `program`: cpack in the build folder writes it. The programs
# print their help, which help2man, if installed, turns into manual pages.
set(shell ${PROJECT_BINARY_DIR}/generated/shell)
file(MAKE_DIRECTORY ${shell})
# difftape_printed(FILE FOLDER PROGRAM COMMAND...): installs the output of COMMAND, which runs
# PROGRAM, as share/FOLDER/FILE; gzip compresses a FILE that ends in .gz.
function(difftape_printed file folder program)
  set(compress)
  string(REGEX REPLACE "\\.gz$" "" plain ${file})
  if(NOT plain STREQUAL file)
    set(compress COMMAND gzip -9nf ${shell}/${plain})
  endif()
  add_custom_command(OUTPUT ${shell}/${file} DEPENDS ${program} ${manual}
    COMMAND ${ARGN} > ${shell}/${plain} ${compress})
  set_property(GLOBAL APPEND PROPERTY difftape_printed ${shell}/${file})
  install(FILES ${shell}/${file} DESTINATION share/${folder} COMPONENT program)
endfunction()
find_program(HELP2MAN help2man)
set(manual ${PROJECT_SOURCE_DIR}/packaging/manual.h2m)
foreach(program difftape difftape-f64)
  if(HELP2MAN)
    difftape_printed(${program}.1.gz man/man1 ${program} ${HELP2MAN} --no-info
      --help-option=--help-all --version-string=${PROJECT_VERSION} --include=${manual}
      --name "find out which attention mechanism trains stably" $<TARGET_FILE:${program}>)
  endif()
endforeach()
get_property(printed GLOBAL PROPERTY difftape_printed)
add_custom_target(difftape_shell ALL DEPENDS ${printed})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME difftape)
set(CPACK_PACKAGE_CONTACT "difftape <difftape@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "find out which attention mechanism trains stably")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME difftape)
set(CPACK_DEBIAN_PROGRAM_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
# Without data.path, difftape trains on the headers of Eigen.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS libeigen3-dev)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
include(CPack)
