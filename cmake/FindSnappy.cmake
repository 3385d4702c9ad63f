# Snappy, which expands pages of Parquet. Upstream's CMake package is not in every distribution. Defines Snappy::snappy.
# Installed beside leat-config.cmake, because who links a static leat links it too.

find_path(SNAPPY_INCLUDE_DIR snappy-c.h)
find_library(SNAPPY_LIBRARY snappy)
mark_as_advanced(SNAPPY_INCLUDE_DIR SNAPPY_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Snappy REQUIRED_VARS SNAPPY_LIBRARY SNAPPY_INCLUDE_DIR)

if(Snappy_FOUND AND NOT TARGET Snappy::snappy)
  add_library(Snappy::snappy UNKNOWN IMPORTED)
  set_target_properties(Snappy::snappy PROPERTIES
    IMPORTED_LOCATION "${SNAPPY_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${SNAPPY_INCLUDE_DIR}")
endif()
