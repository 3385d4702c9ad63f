# `cmake --install`, and what find_package(leat) and pkg-config read afterwards.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(leat_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/leat)

# A release is installed without the symbols that only a debugger and a profiler read: of the command they are most of 22 MB.
# They stay in the build directory. CMake strips programs and shared libraries; of an archive `strip` has to leave what links.
install(CODE "if(CMAKE_INSTALL_CONFIG_NAME MATCHES \"^(Release|MinSizeRel)$\")
  set(CMAKE_INSTALL_DO_STRIP TRUE)
endif()")

function(leat_strip_archive target)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "STATIC_LIBRARY" AND CMAKE_STRIP)
    install(CODE "if(CMAKE_INSTALL_DO_STRIP)
  execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/$<TARGET_FILE_NAME:${target}>\" COMMAND_ERROR_IS_FATAL ANY)
endif()")
  endif()
endfunction()

install(TARGETS leat EXPORT leat FILE_SET HEADERS FILE_SET cuda_header FILE_SET torch_headers)
if(leat_objects)
  leat_strip_archive(leat)
endif()
install(EXPORT leat FILE leat-targets.cmake NAMESPACE leat:: DESTINATION ${leat_package_dir})
install(FILES LICENSE THIRD-PARTY.txt DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents)
if(TARGET leat_mpi)
  install(TARGETS leat_mpi EXPORT leat-mpi FILE_SET HEADERS)
  leat_strip_archive(leat_mpi)
  install(EXPORT leat-mpi FILE leat-mpi-targets.cmake NAMESPACE leat:: DESTINATION ${leat_package_dir})
endif()
if(LEAT_BUILD_TOOLS AND TARGET leat_tool)
  install(TARGETS leat_tool)
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
    install(TARGETS leat_mpi_module LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/leat)
  endif()
endif()

# Who links a static leat links what it is made of, so both packages must find that first: the CMake one by the namespace of each
# target, pkg-config by the name of its module. tests/consumer proves it. A shared leat has them inside.
set(leat_private_packages "")
set(leat_pc_requires "")
set(leat_pc_libs "")
if(NOT BUILD_SHARED_LIBS)
  foreach(link IN LISTS leat_links)
    if(link MATCHES "BUILD_INTERFACE")
      continue()
    endif()
    string(REGEX REPLACE "^\\$<INSTALL_INTERFACE:(.*)>$" "\\1" link "${link}")
    string(REGEX REPLACE "::.*" "" package "${link}")
    list(APPEND leat_private_packages ${package})
    if(link STREQUAL "CUDA::cudart_static")
      list(APPEND leat_pc_libs -lcudart_static -ldl -lrt)
    elseif(package STREQUAL "absl")
      string(REPLACE "::" "_" module "${link}")
      list(APPEND leat_pc_requires ${module})
    elseif(DEFINED leat_pc_module_of_${package})
      list(APPEND leat_pc_requires ${leat_pc_module_of_${package}})
    else()
      message(FATAL_ERROR "leat: leat.pc has no module for ${link}: name it in cmake/dependencies.cmake, leat_pc_module_of_${package}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES leat_private_packages)
  list(REMOVE_DUPLICATES leat_pc_requires)
endif()
list(TRANSFORM leat_private_packages REPLACE "^CUDA$" CUDAToolkit)

configure_package_config_file(cmake/leat-config.cmake.in ${PROJECT_BINARY_DIR}/leat-config.cmake
  INSTALL_DESTINATION ${leat_package_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change any interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/leat-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/leat-config.cmake ${PROJECT_BINARY_DIR}/leat-config-version.cmake
              cmake/FindBlosc.cmake cmake/FindLZ4.cmake cmake/FindLibdeflate.cmake cmake/FindLiburing.cmake
              cmake/FindPCRE2.cmake cmake/FindSnappy.cmake cmake/FindUtf8proc.cmake cmake/FindWebP.cmake cmake/FindZstd.cmake cmake/refused.cmake
  DESTINATION ${leat_package_dir})

set(leat_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH leat_pc_to_prefix /${leat_pc_dir} /)
list(JOIN leat_pc_requires ", " leat_pc_requires)
list(JOIN leat_pc_libs " " leat_pc_libs)
configure_file(cmake/leat.pc.in ${PROJECT_BINARY_DIR}/leat.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/leat.pc DESTINATION ${leat_pc_dir})
