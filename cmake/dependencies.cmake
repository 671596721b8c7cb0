# Every external library difftape uses, found once. The Debian packages are listed in packages.txt.
set(CMAKE_FIND_PACKAGE_NAME difftape)  # as find_package(difftape REQUIRED) finds them
set(difftape_FIND_REQUIRED TRUE)
include(${CMAKE_CURRENT_LIST_DIR}/libraries.cmake)
unset(CMAKE_FIND_PACKAGE_NAME)
if(difftape_NOT_FOUND_MESSAGE)
  message(FATAL_ERROR "${difftape_NOT_FOUND_MESSAGE}")
endif()
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Boost REQUIRED)  # headers only, beside those of the compiler
find_path(RANDOM123_INCLUDE Random123/philox.h REQUIRED)
find_path(PROTOZERO_INCLUDE protozero/pbf_builder.hpp REQUIRED)
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
    message(STATUS "libxsmm not found: GEMM uses the portable kernels")
  endif()
endif()

# MPI lets several processes train one model together. Only core/distributed.cpp uses it.
if(DIFFTAPE_MPI)
  pkg_check_modules(MPI QUIET ompi-c)
  if(MPI_FOUND)
    set_source_files_properties(core/distributed.cpp PROPERTIES
      COMPILE_DEFINITIONS DIFFTAPE_WITH_MPI=1 INCLUDE_DIRECTORIES "${MPI_INCLUDE_DIRS}")
  else()
    message(STATUS "Open MPI not found: a model is trained by one process")
  endif()
endif()
