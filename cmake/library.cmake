# leat::leat, from the objects of all modules: static, or shared with BUILD_SHARED_LIBS.

get_property(leat_objects GLOBAL PROPERTY leat_objects)
get_property(leat_links GLOBAL PROPERTY leat_links)
list(REMOVE_DUPLICATES leat_links)

file(GLOB leat_public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/leat/*.hpp
  ${PROJECT_SOURCE_DIR}/include/leat/*.h)
# Installed always, and compiled alone only where there is CUDA.
set(leat_cuda_header ${PROJECT_SOURCE_DIR}/include/leat/cuda.hpp)
list(REMOVE_ITEM leat_public_headers ${leat_cuda_header})
# That of leat::mpi (stages/mpi/CMakeLists.txt).
list(REMOVE_ITEM leat_public_headers ${PROJECT_SOURCE_DIR}/include/leat/mpi.hpp)

if(leat_objects)
  add_library(leat ${leat_objects})
  set_target_properties(leat PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_link_libraries(leat PUBLIC Boost::headers Threads::Threads PRIVATE ${leat_links})
  target_compile_features(leat PUBLIC cxx_std_20)
  if(BUILD_SHARED_LIBS AND NOT LEAT_SANITIZE)
    # A library that some module forgot to name in LINKS fails here and not at the user's.
    target_link_options(leat PRIVATE LINKER:-z,defs)
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
  FILE_SET cuda_header TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${leat_cuda_header})
add_library(leat::leat ALIAS leat)
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
