# leat as a port of vcpkg, an overlay of the sources that it lies in:
#
#   vcpkg install "leat[tool]" --triplet x64-linux-dynamic --overlay-ports=packaging/vcpkg
#
# The triplet is one of shared libraries: leat's find modules name no library of a static library's. The compiler is GCC 13, clang 17, or
# newer. vcpkg knows a port again by these files, and not by the sources: after a change of those, `vcpkg remove leat` comes first.
#
# vcpkg could not be had where it was written. packaging/vcpkg/check.cmake builds the port without it, with the distribution's libraries,
# and programs with the package; what vcpkg's own ports of the libraries give was read, and not built.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)
# The version's home is the header; vcpkg wants it in vcpkg.json too.
file(STRINGS "${SOURCE_PATH}/include/leat/version.hpp" numbers REGEX "#define LEAT_VERSION_(MAJOR|MINOR|PATCH)")
string(REGEX REPLACE "[^0-9;]" "" numbers "${numbers}")
list(JOIN numbers "." version)
if(NOT version STREQUAL VERSION)
  message(FATAL_ERROR "packaging/vcpkg/leat/vcpkg.json says ${VERSION}, and include/leat/version.hpp ${version}: write that there")
endif()

vcpkg_check_features(OUT_FEATURE_OPTIONS features FEATURES
  tool LEAT_BUILD_TOOLS
  cuda LEAT_CUDA)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${features} -DLEAT_REMOTE=ON -DLEAT_TIFF=ON -DLEAT_MPI=OFF -DLEAT_BUILD_TESTS=OFF -DLEAT_BUILD_BENCHMARKS=OFF -DLEAT_BUILD_EXAMPLES=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/leat)
vcpkg_fixup_pkgconfig()
if("tool" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES leat AUTO_CLEAN)
endif()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE" "${SOURCE_PATH}/THIRD-PARTY.txt")
