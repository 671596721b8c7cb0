# Every external library difftape uses, found once. The Debian packages are listed in packages.txt.
find_package(PkgConfig REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(yaml-cpp REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Boost REQUIRED)  # headers only, beside those of the compiler
pkg_check_modules(HDF5 REQUIRED IMPORTED_TARGET hdf5)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
find_path(RANDOM123_INCLUDE Random123/philox.h REQUIRED)
find_path(DYGRAPHS_DIR dist/dygraph.min.js dygraph.min.js
  PATHS /usr/share/javascript/dygraphs /usr/share/nodejs/dygraphs REQUIRED NO_DEFAULT_PATH)

get_target_property(EIGEN_HEADERS Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)

add_library(difftape_xsmm INTERFACE)
if(DIFFTAPE_LIBXSMM)
  find_path(LIBXSMM_INCLUDE libxsmm.h PATH_SUFFIXES libxsmm)
  find_library(LIBXSMM_LIBRARY xsmm)
  find_library(LIBXSMM_NOBLAS_LIBRARY xsmmnoblas)
  if(LIBXSMM_INCLUDE AND LIBXSMM_LIBRARY AND LIBXSMM_NOBLAS_LIBRARY)
    target_include_directories(difftape_xsmm SYSTEM INTERFACE ${LIBXSMM_INCLUDE})
    target_link_libraries(difftape_xsmm INTERFACE
      ${LIBXSMM_LIBRARY} ${LIBXSMM_NOBLAS_LIBRARY} ${CMAKE_DL_LIBS} pthread m)
    target_compile_definitions(difftape_xsmm INTERFACE DIFFTAPE_WITH_LIBXSMM=1)
  else()
    message(STATUS "libxsmm not found: matrix products run on Eigen")
  endif()
endif()
