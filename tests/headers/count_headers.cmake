# cmake -D COMPILER=... -D FLAGS=... -D INCLUDES=... -D FOLDER=... -D UNIT=a.cpp  -P count_headers.cmake
#   -D WITHOUT=/boost/                 no header whose path has this
#   -D LEAST=b.cpp -D MORE_MAX=20      at most so many more headers than this unit
separate_arguments(flags UNIX_COMMAND "${FLAGS}")
list(TRANSFORM INCLUDES PREPEND -I)

function(headers_of unit out)
  execute_process(COMMAND ${COMPILER} -std=c++20 -O2 ${flags} ${INCLUDES} -M ${FOLDER}/${unit}
    OUTPUT_VARIABLE rule ERROR_VARIABLE errors RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${unit} does not compile:\n${errors}")
  endif()
  # One rule of make's: "values.o: values.cpp a.hpp \<newline> b.hpp". The first one is the unit itself.
  string(REGEX REPLACE "^[^:]*:|[\\]\n" " " rule "${rule}")
  separate_arguments(headers UNIX_COMMAND "${rule}")
  list(POP_FRONT headers)
  set(${out} ${headers} PARENT_SCOPE)
endfunction()

headers_of(${UNIT} headers)
list(LENGTH headers count)
message("${UNIT}: ${count} headers")
if(count LESS 20)
  message(FATAL_ERROR "that cannot be all of them")
endif()

if(WITHOUT)
  set(unwanted ${headers})
  list(FILTER unwanted INCLUDE REGEX "${WITHOUT}")
  if(unwanted)
    list(GET unwanted 0 first)
    message(FATAL_ERROR "${first} is among them. Forward declarations, or code in a .cpp, keep it out; `${COMPILER} -H` says who includes it")
  endif()
endif()

if(LEAST)
  headers_of(${LEAST} least)
  list(LENGTH least least_count)
  math(EXPR more "${count} - ${least_count}")
  message("${LEAST}: ${least_count} headers, ${more} fewer; ${MORE_MAX} are allowed")
  if(more GREATER MORE_MAX)
    list(REMOVE_ITEM headers ${least})
    list(JOIN headers "\n  " those)
    message(FATAL_ERROR "${UNIT} includes more than it needs to:\n  ${those}")
  endif()
endif()
