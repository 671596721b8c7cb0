# The Debian package of the component `program`: cpack in the build folder writes it. Manual pages
# and completions are printed by the programs themselves.
set(shell ${PROJECT_BINARY_DIR}/generated/shell)
file(MAKE_DIRECTORY ${shell})
# difftape_printed(PROGRAM ARGUMENT... TO FILE IN FOLDER): what the program prints, installed there;
# gzip compresses a FILE that ends in .gz.
function(difftape_printed program)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TO;IN" "")
  set(compress)
  string(REGEX REPLACE "\\.gz$" "" plain ${arg_TO})
  if(NOT plain STREQUAL arg_TO)
    set(compress COMMAND gzip -9nf ${shell}/${plain})
  endif()
  add_custom_command(OUTPUT ${shell}/${arg_TO} DEPENDS ${program}
    COMMAND ${program} ${arg_UNPARSED_ARGUMENTS} > ${shell}/${plain} ${compress})
  set_property(GLOBAL APPEND PROPERTY difftape_printed ${shell}/${arg_TO})
  install(FILES ${shell}/${arg_TO} DESTINATION share/${arg_IN} COMPONENT program)
endfunction()
foreach(program difftape difftape-f64)
  difftape_printed(${program} man TO ${program}.1.gz IN man/man1)
  difftape_printed(${program} completion bash TO ${program} IN bash-completion/completions)
  difftape_printed(${program} completion zsh TO _${program} IN zsh/vendor-completions)
  difftape_printed(${program} completion fish TO ${program}.fish IN fish/vendor_completions.d)
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
# The headers of Eigen are the text that is trained on without data.path.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS libeigen3-dev)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
include(CPack)
