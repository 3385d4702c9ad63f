# cmake -DPROGRAM=... -DSTRIP=... -DLIBRARIES_MAX=... -DBYTES_MAX=... -P small.cmake: what a program links, and how large it is when it is
# stripped.
execute_process(COMMAND ldd ${PROGRAM} OUTPUT_VARIABLE libraries COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" libraries "${libraries}")
# The kernel's is no file.
list(FILTER libraries EXCLUDE REGEX "linux-vdso")
list(LENGTH libraries count)
execute_process(COMMAND ${STRIP} -o ${PROGRAM}.stripped ${PROGRAM} COMMAND_ERROR_IS_FATAL ANY)
file(SIZE ${PROGRAM}.stripped bytes)
message(STATUS "${count} shared libraries, ${bytes} bytes")
if(count GREATER LIBRARIES_MAX OR bytes GREATER BYTES_MAX)
  list(JOIN libraries "\n" libraries)
  message(FATAL_ERROR "${PROGRAM} has ${bytes} bytes, and ${count} shared libraries:\n${libraries}\n"
    "${BYTES_MAX} bytes and ${LIBRARIES_MAX} libraries are wanted: something in leat::core calls what belongs to another component")
endif()
