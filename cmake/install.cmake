# The two components of `cmake --install`: `program`, and `development`, the libraries that
# find_package(difftape) finds.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The program looks for its configurations in ../share/difftape (train/system/files.h), also where it
# is built.
file(RELATIVE_PATH configs ${PROJECT_BINARY_DIR}/share/difftape ${PROJECT_SOURCE_DIR}/configs)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/difftape)
file(CREATE_LINK ${configs} ${PROJECT_BINARY_DIR}/share/difftape/configs SYMBOLIC)
install(TARGETS difftape difftape-f64 RUNTIME DESTINATION bin COMPONENT program)
if(DIFFTAPE_LEVEL)
  difftape_install_levels()
endif()
install(DIRECTORY configs DESTINATION share/difftape COMPONENT program)
# The pages, with what they link to.
install(FILES README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md CITATION.cff
  DESTINATION share/doc/difftape COMPONENT program)
install(DIRECTORY docs results DESTINATION share/doc/difftape COMPONENT program)
install(FILES LICENSE RENAME copyright DESTINATION share/doc/difftape COMPONENT program)

# The libraries, as difftape::kernel, difftape::kernel_f64, ...
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/difftape)
set(libraries difftape_xsmm)
set_target_properties(difftape_xsmm PROPERTIES EXPORT_NAME xsmm)
foreach(precision f32 f64)
  string(REPLACE "_f32" "" suffix _${precision})
  foreach(name kernel gradcheck)
    list(APPEND libraries difftape_${name}_${precision})
    set_target_properties(difftape_${name}_${precision} PROPERTIES EXPORT_NAME ${name}${suffix})
  endforeach()
  list(APPEND libraries difftape_${precision})
  set_target_properties(difftape_${precision} PROPERTIES EXPORT_NAME program${suffix})
endforeach()
install(TARGETS ${libraries} EXPORT difftape
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  FILE_SET HEADERS DESTINATION include/difftape COMPONENT development)
install(EXPORT difftape NAMESPACE difftape:: FILE difftapeTargets.cmake DESTINATION ${package}
  COMPONENT development)
configure_package_config_file(cmake/difftapeConfig.cmake.in difftapeConfig.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(difftapeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/difftapeConfig.cmake cmake/libraries.cmake
  ${PROJECT_BINARY_DIR}/difftapeConfigVersion.cmake DESTINATION ${package} COMPONENT development)
