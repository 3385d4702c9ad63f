# `cmake --install` and what find_package(leat) reads afterwards.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(leat_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/leat)

install(TARGETS leat EXPORT leat FILE_SET HEADERS FILE_SET cuda_header)
install(EXPORT leat FILE leat-targets.cmake NAMESPACE leat:: DESTINATION ${leat_package_dir})

# Who links a static leat links what it is made of, so its package must find them first. A link target's namespace is its
# package's name, and tests/consumer proves it. A shared leat has them inside.
set(leat_private_packages "")
if(NOT BUILD_SHARED_LIBS)
  foreach(link IN LISTS leat_links)
    if(NOT link MATCHES "::")
      continue()  # a file or a system's library (CUDA's runtime): it comes as it is
    endif()
    string(REGEX REPLACE "::.*" "" package "${link}")
    list(APPEND leat_private_packages ${package})
  endforeach()
  list(REMOVE_DUPLICATES leat_private_packages)
endif()

configure_package_config_file(cmake/leat-config.cmake.in ${PROJECT_BINARY_DIR}/leat-config.cmake
  INSTALL_DESTINATION ${leat_package_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change any interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/leat-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/leat-config.cmake ${PROJECT_BINARY_DIR}/leat-config-version.cmake
              cmake/FindLiburing.cmake
  DESTINATION ${leat_package_dir})

if(LEAT_BUILD_TOOLS AND TARGET leat_tool)
  install(TARGETS leat_tool)
endif()
