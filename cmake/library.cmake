# leat::leat, from the objects of all modules: static, or shared with BUILD_SHARED_LIBS.

get_property(leat_objects GLOBAL PROPERTY leat_objects)
get_property(leat_links GLOBAL PROPERTY leat_links)
list(REMOVE_DUPLICATES leat_links)

file(GLOB leat_public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/leat/*.hpp)

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
add_library(leat::leat ALIAS leat)
# The target all_verify_interface_header_sets compiles each public header alone, with what users get and nothing else.
set_target_properties(leat PROPERTIES VERIFY_INTERFACE_HEADER_SETS ${PROJECT_IS_TOP_LEVEL})
