# What is installed beside programs and libraries: licences, the manual, completions.
#
#   cmake -DBUILD=<build directory> -DSOURCE=<root of the sources> -P installed_documents_test.cmake

set(prefix ${BUILD}/installed-documents)
file(REMOVE_RECURSE ${prefix})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --component documents --prefix ${prefix}
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
set(share ${prefix}/share)
foreach(file doc/leat/LICENSE doc/leat/THIRD-PARTY.txt man/man1/leat.1 bash-completion/completions/leat
        zsh/site-functions/_leat fish/vendor_completions.d/leat.fish)
  if(NOT EXISTS ${share}/${file})
    message(SEND_ERROR "share/${file} is not installed")
    continue()
  endif()
  file(SIZE ${share}/${file} bytes)
  if(bytes LESS 1000)
    message(SEND_ERROR "share/${file} has ${bytes} bytes")
  endif()
endforeach()

# Each library that the build looks for is named, and of each that is compiled in there is a licence under its name.
file(READ ${share}/doc/leat/THIRD-PARTY.txt texts)
file(READ ${SOURCE}/cmake/dependencies.cmake looked_for)
string(REGEX MATCHALL "find_package\\([A-Za-z0-9_]+" libraries "${looked_for}")
list(TRANSFORM libraries REPLACE "find_package\\(" "")
foreach(library IN LISTS libraries)
  set(name ${library})
  if(library STREQUAL "absl")
    set(name Abseil)
  elseif(library STREQUAL "hwy")
    set(name Highway)
  endif()
  if(NOT texts MATCHES "[ \n]${name}[ ,.;]")
    message(SEND_ERROR "THIRD-PARTY.txt does not say whether ${name} is compiled in")
  endif()
endforeach()
foreach(name Abseil Boost CLI11 CUDA Highway Liburing Random123 nlohmann_json xxHash)
  if(NOT texts MATCHES "\n  ${name} +[A-Z]" OR NOT texts MATCHES "\n${name}\n-+\n\n[^\n]*(Copyright|xxHash Library)")
    message(SEND_ERROR "THIRD-PARTY.txt has no licence of ${name}")
  endif()
endforeach()
file(REMOVE_RECURSE ${prefix})
