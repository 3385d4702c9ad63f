# leat::leat, from the objects of all modules: static, or shared with BUILD_SHARED_LIBS.

get_property(leat_objects GLOBAL PROPERTY leat_objects)
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

# Of an archive the linker sees the names in all objects. So all are one, in which only the public names are left global. Sanitizers
# and link-time optimisation have names and code of their own there.
set(leat_archived ${leat_objects})
if(leat_objects AND NOT BUILD_SHARED_LIBS AND NOT LEAT_EXPORT_INTERNALS AND NOT LEAT_SANITIZE AND CMAKE_OBJCOPY AND CMAKE_LINKER
    AND NOT CMAKE_INTERPROCEDURAL_OPTIMIZATION AND NOT CMAKE_CXX_FLAGS MATCHES "-flto")
  set(leat_archived ${CMAKE_CURRENT_BINARY_DIR}/leat_whole.o)
  add_custom_command(OUTPUT ${leat_archived}
    COMMAND ${CMAKE_LINKER} -r --force-group-allocation -o ${leat_archived} ${leat_objects}
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden --wildcard
      --keep-global-symbol=_ZN4leat* --keep-global-symbol=_ZNK4leat* --keep-global-symbol=_ZT?N4leat* ${leat_archived}
    DEPENDS ${leat_objects} COMMENT "Only public names of libleat.a stay global" COMMAND_EXPAND_LISTS VERBATIM)
  set_source_files_properties(${leat_archived} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
endif()

if(leat_objects)
  add_library(leat ${leat_archived})
  set_target_properties(leat PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_link_libraries(leat PUBLIC Boost::headers Threads::Threads PRIVATE ${leat_links})
  target_compile_features(leat PUBLIC cxx_std_20)
  if(BUILD_SHARED_LIBS AND NOT LEAT_SANITIZE)
    # A library that some module forgot to name in LINKS fails here and not at the user's.
    target_link_options(leat PRIVATE LINKER:-z,defs)
  endif()
  if(BUILD_SHARED_LIBS AND NOT LEAT_EXPORT_INTERNALS)
    target_link_options(leat PRIVATE LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/exported.map)
    set_property(TARGET leat APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exported.map)
  endif()
  target_sources(leat PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${leat_public_headers})
else()
  add_library(leat INTERFACE)
  target_link_libraries(leat INTERFACE Boost::headers Threads::Threads)
  target_compile_features(leat INTERFACE cxx_std_20)
  target_sources(leat INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${leat_public_headers})
endif()
if(leat_objects)
  set(leat_header_scope PUBLIC)
else()
  set(leat_header_scope INTERFACE)
endif()
target_sources(leat ${leat_header_scope}
  FILE_SET cuda_header TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${leat_cuda_header}
  FILE_SET torch_headers TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${leat_torch_headers})
add_library(leat::leat ALIAS leat)
# Executors and coroutines of Asio go to and fro between leat and the program: both need the same (completion.hpp).
set(leat_boost_version ${Boost_VERSION_MAJOR}.${Boost_VERSION_MINOR})
file(STRINGS ${Boost_INCLUDE_DIRS}/boost/asio/version.hpp leat_asio_version REGEX "#define BOOST_ASIO_VERSION [0-9]+")
string(REGEX REPLACE "[^0-9]*([0-9]+).*" "\\1" leat_asio_version "${leat_asio_version}")
target_compile_definitions(leat INTERFACE LEAT_ASIO_VERSION=${leat_asio_version})
# The target all_verify_interface_header_sets compiles each public header alone, with what users get and nothing else.
set_target_properties(leat PROPERTIES VERIFY_INTERFACE_HEADER_SETS ${PROJECT_IS_TOP_LEVEL}
  INTERFACE_HEADER_SETS_TO_VERIFY HEADERS)
if(LEAT_HAVE_CUDA)
  # As a user of cuda.hpp has it: leat, and the runtime's headers beside it.
  add_library(leat_with_cuda INTERFACE)
  target_link_libraries(leat_with_cuda INTERFACE leat::leat leat_cudart)
  target_sources(leat_with_cuda INTERFACE
    FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${leat_cuda_header})
  set_target_properties(leat_with_cuda PROPERTIES VERIFY_INTERFACE_HEADER_SETS ${PROJECT_IS_TOP_LEVEL})
endif()
