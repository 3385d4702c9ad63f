# `cmake --install`, and what find_package(leat) and pkg-config read afterwards.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(leat_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/leat)

# Each of these is a package (cmake/packages.cmake). What is said of none is of who compiles against leat.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)

# A release is installed without the symbols that only a debugger and a profiler read: of the command they are most of 22 MB.
# They stay in the build directory. CMake strips programs and shared libraries; of an archive `strip` has to leave what links.
install(CODE "if(CMAKE_INSTALL_CONFIG_NAME MATCHES \"^(Release|MinSizeRel)$\")
  set(CMAKE_INSTALL_DO_STRIP TRUE)
endif()" ALL_COMPONENTS)

function(leat_strip_archive target)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "STATIC_LIBRARY" AND CMAKE_STRIP)
    install(CODE "if(CMAKE_INSTALL_DO_STRIP)
  execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/$<TARGET_FILE_NAME:${target}>\" COMMAND_ERROR_IS_FATAL ANY)
endif()")
  endif()
endfunction()

# An export for each component: a program finds one of them where the libraries of others are not installed.
set(leat_header_sets FILE_SET HEADERS FILE_SET cuda_header FILE_SET torch_headers)
if(leat_split)
  install(TARGETS leat_core EXPORT leat-core ${leat_header_sets})
  install(TARGETS leat EXPORT leat)
else()
  install(TARGETS leat EXPORT leat LIBRARY COMPONENT library NAMELINK_COMPONENT development ${leat_header_sets})
  install(TARGETS leat_core EXPORT leat-core)
endif()
foreach(name IN LISTS leat_components)
  install(TARGETS leat_${name} EXPORT leat-${name})
endforeach()
foreach(name IN ITEMS core ${leat_components})
  leat_strip_archive(leat_${name})
  install(EXPORT leat-${name} FILE leat-${name}-targets.cmake NAMESPACE leat:: DESTINATION ${leat_package_dir})
endforeach()
leat_strip_archive(leat)
install(EXPORT leat FILE leat-targets.cmake NAMESPACE leat:: DESTINATION ${leat_package_dir})
install(FILES LICENSE THIRD-PARTY.txt DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents)
if(TARGET leat_mpi)
  install(TARGETS leat_mpi EXPORT leat-mpi FILE_SET HEADERS)
  leat_strip_archive(leat_mpi)
  install(EXPORT leat-mpi FILE leat-mpi-targets.cmake NAMESPACE leat:: DESTINATION ${leat_package_dir})
endif()
if(LEAT_BUILD_TOOLS AND TARGET leat_tool)
  install(TARGETS leat_tool COMPONENT tool)
  if(TARGET leat_help_files)
    get_target_property(leat_help_folder leat_help_files FOLDER_OF_FILES)
    install(FILES ${leat_help_folder}/leat.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT documents)
    # Where each shell looks below /usr and /usr/local.
    install(FILES ${leat_help_folder}/bash/leat DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
      COMPONENT documents)
    install(FILES ${leat_help_folder}/zsh/_leat DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT documents)
    install(FILES ${leat_help_folder}/fish/leat.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
      COMPONENT documents)
  endif()
  if(TARGET leat_mpi_module)
    install(TARGETS leat_mpi_module LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/leat COMPONENT tool)
  endif()
endif()

# Who links a static leat links what it is made of, so both packages must find that first: the CMake one by the namespace of each
# target, pkg-config by the name of its module. tests/consumer proves it. A shared leat has them inside.
#
# leat_needs(<links>...): sets needs_packages, needs_modules and needs_libs.
function(leat_needs)
  set(packages "")
  set(modules "")
  set(libs "")
  foreach(link IN LISTS ARGN)
    if(link MATCHES "BUILD_INTERFACE")
      continue()
    endif()
    string(REGEX REPLACE "^\\$<INSTALL_INTERFACE:(.*)>$" "\\1" link "${link}")
    string(REGEX REPLACE "::.*" "" package "${link}")
    list(APPEND packages ${package})
    if(link STREQUAL "CUDA::cudart_static")
      list(APPEND libs -lcudart_static -ldl -lrt)
    elseif(DEFINED leat_pc_module_of_${package})
      list(APPEND modules ${leat_pc_module_of_${package}})
    else()
      message(FATAL_ERROR "leat: leat.pc has no module for ${link}: name it in cmake/dependencies.cmake, leat_pc_module_of_${package}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES packages)
  list(REMOVE_DUPLICATES modules)
  list(TRANSFORM packages REPLACE "^CUDA$" CUDAToolkit)
  set(needs_packages ${packages} PARENT_SCOPE)
  set(needs_modules ${modules} PARENT_SCOPE)
  set(needs_libs ${libs} PARENT_SCOPE)
endfunction()

set(leat_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH leat_pc_to_prefix /${leat_pc_dir} /)
# leat_pc(<file's name> <libraries>...): requires ${modules}.
function(leat_pc name)
  list(JOIN modules ", " leat_pc_requires)
  list(JOIN ARGN " " leat_pc_libs)
  set(leat_pc_name ${name})
  configure_file(cmake/leat.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${leat_pc_dir})
endfunction()

set(leat_packages "")  # what find_package(leat) looks for, component by component
set(modules_of_all "")
foreach(name IN ITEMS core ${leat_components})
  set(needs_packages "")
  set(needs_modules "")
  set(needs_libs "")
  set(libs "")
  if(leat_split AND NOT name STREQUAL "cuda")
    leat_needs(${leat_links_of_${name}})
    set(libs -lleat_${name} ${needs_libs})
    if(name STREQUAL "core")
      list(APPEND libs -Wl,--gc-sections)
    elseif(name STREQUAL "remote")
      list(PREPEND libs -Wl,--undefined=_ZN4leat16remote_is_linkedE)
    endif()
  elseif(leat_objects AND name STREQUAL "core")
    if(NOT BUILD_SHARED_LIBS)
      leat_needs(${leat_links})
    endif()
    set(libs -lleat ${needs_libs})
  endif()
  list(JOIN needs_packages " " needs_packages)
  string(APPEND leat_packages "set(leat_packages_of_${name} ${needs_packages})\n")
  set(modules ${needs_modules})
  if(NOT name STREQUAL "core")
    list(PREPEND modules leat-core)
  endif()
  leat_pc(leat-${name} ${libs})
  list(APPEND modules_of_all leat-${name})
endforeach()
set(modules ${modules_of_all})
leat_pc(leat)

# Where all are the one library, it comes before the components that name it.
set(leat_targets_first "")
if(NOT leat_split)
  set(leat_targets_first "include(\"\${CMAKE_CURRENT_LIST_DIR}/leat-targets.cmake\")")
endif()
list(JOIN leat_components ", " leat_components_text)
configure_package_config_file(cmake/leat-config.cmake.in ${PROJECT_BINARY_DIR}/leat-config.cmake
  INSTALL_DESTINATION ${leat_package_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change any interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/leat-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/leat-config.cmake ${PROJECT_BINARY_DIR}/leat-config-version.cmake
              cmake/FindBlosc.cmake cmake/FindLZ4.cmake cmake/FindLibdeflate.cmake cmake/FindLiburing.cmake
              cmake/FindPCRE2.cmake cmake/FindSnappy.cmake cmake/FindUtf8proc.cmake cmake/FindWebP.cmake cmake/FindZstd.cmake cmake/refused.cmake
  DESTINATION ${leat_package_dir})
