# leat::leat and its components, from the objects of all modules: archives, or one shared library with BUILD_SHARED_LIBS.

get_property(leat_links GLOBAL PROPERTY leat_links)
list(REMOVE_DUPLICATES leat_links)

file(GLOB leat_public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/leat/*.hpp
  ${PROJECT_SOURCE_DIR}/include/leat/*.h)
# Installed always, and compiled alone only where there is CUDA.
set(leat_cuda_header ${PROJECT_SOURCE_DIR}/include/leat/cuda.hpp)
# Installed always, and compiled where there is libtorch (tests/torch).
set(leat_torch_headers ${PROJECT_SOURCE_DIR}/include/leat/torch.hpp ${PROJECT_SOURCE_DIR}/include/leat/torch_dataset.hpp)
list(REMOVE_ITEM leat_public_headers ${leat_cuda_header} ${leat_torch_headers})
# That of leat::mpi (stages/mpi/CMakeLists.txt).
list(REMOVE_ITEM leat_public_headers ${PROJECT_SOURCE_DIR}/include/leat/mpi.hpp)

# The components, so that a program links what it uses: which objects each has, and which of the libraries. leat::core has the rest.
# Nothing in it may call one of these, but for the door to remote objects, which is weak (io/remote/without_remote.cpp).
set(leat_components images tables text remote)
set(leat_links_of_images JPEG::JPEG PNG::PNG WebP::webp ${LEAT_TIFF_LINKS} ${LEAT_HWY_LINKS})
set(leat_links_of_tables LZ4::lz4 Snappy::snappy Blosc::blosc)
set(leat_links_of_text PCRE2::8bit Utf8proc::utf8proc)
set(leat_links_of_remote ${LEAT_REMOTE_LINKS})
if(NOT LEAT_HAVE_REMOTE)
  list(REMOVE_ITEM leat_components remote)
endif()
set(leat_objects "")
foreach(name IN ITEMS core ${leat_components})
  get_property(leat_objects_of_${name} GLOBAL PROPERTY leat_objects_of_${name})
  list(APPEND leat_objects ${leat_objects_of_${name}})
endforeach()

# Each is an archive of one object, in which only the public names are left as they are. All else gets a name of its own, and is
# hidden. Sanitizers and link-time optimisation have names and code of their own there.
set(leat_split FALSE)
if(leat_objects AND NOT BUILD_SHARED_LIBS AND NOT LEAT_EXPORT_INTERNALS AND NOT LEAT_SANITIZE AND CMAKE_OBJCOPY AND CMAKE_LINKER
    AND CMAKE_READELF AND NOT CMAKE_INTERPROCEDURAL_OPTIMIZATION AND NOT CMAKE_CXX_FLAGS MATCHES "-flto")
  set(leat_split TRUE)
endif()

# leat_component_archive(<name> <links>...): the target leat_<name>, from leat_<name>_seen.o.
function(leat_component_archive name)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/leat_${name}_whole.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_OBJCOPY} --redefine-syms=${leat_private_names} ${CMAKE_CURRENT_BINARY_DIR}/leat_${name}_seen.o ${object}
    COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=_ZN4leat* --keep-global-symbol=_ZNK4leat*
      --keep-global-symbol=_ZT?N4leat* --keep-global-symbol=*.leat ${leat_hide} ${object}
    DEPENDS ${leat_private_names} ${CMAKE_CURRENT_BINARY_DIR}/leat_${name}_seen.o
    COMMENT "Only public names of leat::${name} stay as they are" VERBATIM)
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  add_library(leat_${name} STATIC ${object})
  set_target_properties(leat_${name} PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME ${name})
  target_link_libraries(leat_${name} PRIVATE ${ARGN})
endfunction()

if(leat_split)
  set(leat_private_names ${CMAKE_CURRENT_BINARY_DIR}/leat_private_names)
  # Asio shows its names whatever the compiler is told. Where objcopy cannot hide them (GNU's, and LLVM's before 18), a shared library of
  # the user's shows them, with their names of ours.
  set(leat_hide "")
  execute_process(COMMAND ${CMAKE_OBJCOPY} --help OUTPUT_VARIABLE leat_objcopy_help ERROR_QUIET)
  if(leat_objcopy_help MATCHES "--set-symbol-visibility")
    set(leat_hide --set-symbol-visibility=*.leat=hidden)
  endif()
  set(leat_seen "")
  foreach(name IN ITEMS core ${leat_components})
    set(seen ${CMAKE_CURRENT_BINARY_DIR}/leat_${name}_seen.o)
    add_custom_command(OUTPUT ${seen}
      COMMAND ${CMAKE_LINKER} -r --force-group-allocation -o ${seen} ${leat_objects_of_${name}}
      DEPENDS ${leat_objects_of_${name}} COMMENT "The objects of leat::${name} are one" COMMAND_EXPAND_LISTS VERBATIM)
    list(APPEND leat_seen ${seen})
  endforeach()
  add_custom_command(OUTPUT ${leat_private_names}
    COMMAND ${PROJECT_SOURCE_DIR}/cmake/private_names ${CMAKE_READELF} ${leat_seen} > ${leat_private_names}
    DEPENDS ${leat_seen} ${PROJECT_SOURCE_DIR}/cmake/private_names VERBATIM)

  set(links ${leat_links})
  foreach(name IN LISTS leat_components)
    list(REMOVE_ITEM links ${leat_links_of_${name}})
  endforeach()
  set(leat_links_of_core ${links})
  leat_component_archive(core ${links})
  # What no part of a program refers to is left out of it.
  target_link_options(leat_core INTERFACE LINKER:--gc-sections)
  add_library(leat INTERFACE)
  foreach(name IN LISTS leat_components)
    leat_component_archive(${name} ${leat_links_of_${name}})
    target_link_libraries(leat_${name} PUBLIC leat_core)
    target_link_libraries(leat INTERFACE leat_${name})
  endforeach()
  if(TARGET leat_remote)
    # No call of it is anywhere: it takes the place of weak functions.
    target_link_options(leat_remote INTERFACE LINKER:--undefined=_ZN4leat16remote_is_linkedE)
  endif()
  target_link_libraries(leat INTERFACE leat_core)
  set(leat_library leat_core)
elseif(leat_objects)
  add_library(leat ${leat_objects})
  set_target_properties(leat PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_link_libraries(leat PRIVATE ${leat_links})
  if(BUILD_SHARED_LIBS AND NOT LEAT_SANITIZE)
    # A library that some module forgot to name in LINKS fails here and not at the user's.
    target_link_options(leat PRIVATE LINKER:-z,defs)
  endif()
  if(BUILD_SHARED_LIBS AND NOT LEAT_EXPORT_INTERNALS)
    target_link_options(leat PRIVATE LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/exported.map)
    # Some of its names are there with one Boost, or where nothing is optimised, and not otherwise. Linkers that refuse names that are not
    # there know this option.
    include(CheckLinkerFlag)
    check_linker_flag(CXX LINKER:--undefined-version LEAT_LINKER_HAS_UNDEFINED_VERSION)
    if(LEAT_LINKER_HAS_UNDEFINED_VERSION)
      target_link_options(leat PRIVATE LINKER:--undefined-version)
    endif()
    set_property(TARGET leat APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exported.map)
  endif()
  set(leat_library leat)
else()
  add_library(leat INTERFACE)
  set(leat_library leat)
endif()
if(NOT leat_split)
  # All that there is.
  foreach(name IN ITEMS core ${leat_components})
    add_library(leat_${name} INTERFACE)
    set_target_properties(leat_${name} PROPERTIES EXPORT_NAME ${name})
    target_link_libraries(leat_${name} INTERFACE leat)
  endforeach()
endif()
if(LEAT_HAVE_CUDA)
  list(APPEND leat_components cuda)
  add_library(leat_cuda INTERFACE)
  set_target_properties(leat_cuda PROPERTIES EXPORT_NAME cuda)
  target_link_libraries(leat_cuda INTERFACE leat_core)
endif()
foreach(name IN ITEMS core ${leat_components})
  add_library(leat::${name} ALIAS leat_${name})
endforeach()

if(leat_objects)
  set(leat_header_scope PUBLIC)
else()
  set(leat_header_scope INTERFACE)
endif()
target_link_libraries(${leat_library} ${leat_header_scope} Boost::headers Threads::Threads)
target_compile_features(${leat_library} ${leat_header_scope} cxx_std_20)
target_sources(${leat_library} ${leat_header_scope}
  FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${leat_public_headers}
  FILE_SET cuda_header TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${leat_cuda_header}
  FILE_SET torch_headers TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${leat_torch_headers})
add_library(leat::leat ALIAS leat)
# Executors and coroutines of Asio go to and fro between leat and the program: both need the same (completion.hpp).
set(leat_boost_version ${Boost_VERSION_MAJOR}.${Boost_VERSION_MINOR})
file(STRINGS ${Boost_INCLUDE_DIRS}/boost/asio/version.hpp leat_asio_version REGEX "#define BOOST_ASIO_VERSION [0-9]+")
string(REGEX REPLACE "[^0-9]*([0-9]+).*" "\\1" leat_asio_version "${leat_asio_version}")
target_compile_definitions(${leat_library} INTERFACE LEAT_ASIO_VERSION=${leat_asio_version})
# The target all_verify_interface_header_sets compiles each public header alone, with what users get and nothing else.
set_target_properties(${leat_library} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ${PROJECT_IS_TOP_LEVEL}
  INTERFACE_HEADER_SETS_TO_VERIFY HEADERS)
if(LEAT_HAVE_CUDA)
  # As a user of cuda.hpp has it: leat, and the runtime's headers beside it.
  add_library(leat_with_cuda INTERFACE)
  target_link_libraries(leat_with_cuda INTERFACE leat::leat leat_cudart)
  target_sources(leat_with_cuda INTERFACE
    FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${leat_cuda_header})
  set_target_properties(leat_with_cuda PROPERTIES VERIFY_INTERFACE_HEADER_SETS ${PROJECT_IS_TOP_LEVEL})
endif()
