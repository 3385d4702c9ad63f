# `cpack -G DEB` in a build directory with BUILD_SHARED_LIBS=ON and CMAKE_INSTALL_PREFIX=/usr, which scripts/release makes: libleat0.1,
# libleat-dev and leat, as Debian divides a library. A library of another minor version is another package, and both may be installed.

set(so_version ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME leat)
# Whoever gives a package away is its maintainer.
set(LEAT_PACKAGER "The packager of leat <nobody@example.org>" CACHE STRING "Name and address of who answers for the packages")
set(CPACK_PACKAGE_CONTACT "${LEAT_PACKAGER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL library development tool documents)
set(CPACK_COMPONENT_DOCUMENTS_GROUP tool)
set(CPACK_COMPONENT_TOOL_GROUP tool)
set(CPACK_COMPONENT_LIBRARY_GROUP library)
set(CPACK_COMPONENT_DEVELOPMENT_GROUP development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
# rw-r--r--, whatever the umask is.
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "data loader for training on GPUs")
# The linker's cache is made anew by its own trigger.
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/packages/triggers)
file(WRITE ${PROJECT_BINARY_DIR}/packages/triggers "activate-noawait ldconfig\n")
# Manual pages are compressed there.
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_BINARY_DIR}/packages/compress.cmake)
file(WRITE ${PROJECT_BINARY_DIR}/packages/compress.cmake [[
file(GLOB_RECURSE pages ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*)
list(FILTER pages INCLUDE REGEX "/man1/[^/]*[.]1$")
foreach(page IN LISTS pages)
  execute_process(COMMAND gzip -9n ${page} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
]])

# leat_debian_package(<group> <name> <section> <what it has>)
macro(leat_debian_package group name section what)
  string(TOUPPER ${group} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_COMPONENT_${upper}_DESCRIPTION
    "Reads samples from NVMe drives and object stores with io_uring,\ndecodes them on all cores and collates them in place.\n.\n${what}")
  # What each package has in its own folder of documents.
  install(FILES ${PROJECT_BINARY_DIR}/packages/copyright ${PROJECT_BINARY_DIR}/packages/changelog.gz DESTINATION share/doc/${name}
    COMPONENT ${group} EXCLUDE_FROM_ALL)
endmacro()

leat_debian_package(library libleat${so_version} libs "This package has the shared library.")
leat_debian_package(development libleat-dev libdevel "This package has C++20 headers, and what CMake and pkg-config read.")
leat_debian_package(tool leat utils "This package has the command, which measures, checks, packs and inspects\ndatasets.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "libleat${so_version} (= ${PROJECT_VERSION}), libboost${leat_boost_version}-dev | libboost-dev (>= ${leat_boost_version})")

# The licence's text lies on each Debian. What is compiled in has texts of its own.
file(READ THIRD-PARTY.txt others)
file(WRITE ${PROJECT_BINARY_DIR}/packages/copyright
  "leat is under the Apache License, Version 2.0, which is in /usr/share/common-licenses/Apache-2.0.\nCopyright: its authors.\n\n${others}")
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${PROJECT_BINARY_DIR}/packages/changelog
  "leat (${PROJECT_VERSION}) unstable; urgency=medium\n\n  * See CHANGELOG.md of the sources.\n\n -- ${LEAT_PACKAGER}  ${now}\n")
execute_process(COMMAND gzip -9nf ${PROJECT_BINARY_DIR}/packages/changelog COMMAND_ERROR_IS_FATAL ANY)
include(CPack)
