# Blosc 1, which expands chunks of arrays. Upstream's CMake package is not in every distribution. Defines Blosc::blosc.
# Installed beside leat-config.cmake, because who links a static leat links it too.

find_path(Blosc_INCLUDE_DIR blosc.h)
find_library(Blosc_LIBRARY blosc)
mark_as_advanced(Blosc_INCLUDE_DIR Blosc_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Blosc REQUIRED_VARS Blosc_LIBRARY Blosc_INCLUDE_DIR)

if(Blosc_FOUND AND NOT TARGET Blosc::blosc)
  add_library(Blosc::blosc UNKNOWN IMPORTED)
  set_target_properties(Blosc::blosc PROPERTIES
    IMPORTED_LOCATION "${Blosc_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${Blosc_INCLUDE_DIR}")
endif()
