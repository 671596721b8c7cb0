# External libraries that programs link together with difftape's libraries. They are found when
# difftape is built, and again by find_package(difftape), which fails to find difftape if one is
# missing.
include(CMakeFindDependencyMacro)
find_dependency(PkgConfig)
find_dependency(OpenMP COMPONENTS CXX)
find_dependency(Eigen3 3.4 NO_MODULE)
find_dependency(yaml-cpp)
find_dependency(fmt)
foreach(module hdf5 sentencepiece simdjson libxxhash)
  string(REGEX REPLACE "^lib" "" name ${module})
  string(TOUPPER ${name} name)
  pkg_check_modules(${name} QUIET IMPORTED_TARGET ${module})
  if(NOT ${name}_FOUND)
    set(difftape_NOT_FOUND_MESSAGE "difftape needs ${module}, which pkg-config does not find")
    set(difftape_FOUND FALSE)
    return()
  endif()
endforeach()
