# Fails unless a run that is killed and resumed has the losses of one that is not, bit by bit:
#   cmake -DPROGRAM=... -DPHOTOS=... -DCHECKPOINT=... -P killed_and_resumed.cmake
function(run out code)
  execute_process(COMMAND ${PROGRAM} ${PHOTOS} ${CHECKPOINT} ${ARGN} OUTPUT_VARIABLE text RESULT_VARIABLE result)
  if(NOT result EQUAL code)
    message(FATAL_ERROR "ended with ${result}, and not with ${code}")
  endif()
  string(REGEX MATCHALL "epoch [0-9]+, batch [0-9]+: loss [^\n]+" lines "${text}")
  set(${out} "${lines}" PARENT_SCOPE)
endfunction()

file(REMOVE ${CHECKPOINT})
run(undisturbed 0)
file(REMOVE ${CHECKPOINT})
run(killed 3 8)
run(resumed 0)
list(LENGTH undisturbed steps)
list(LENGTH resumed steps_resumed)
list(APPEND killed ${resumed})
list(REMOVE_DUPLICATES killed)  # the steps between the checkpoint and the end of the process came twice
if(NOT killed STREQUAL undisturbed OR steps_resumed EQUAL steps)
  message(FATAL_ERROR "undisturbed: ${undisturbed}\nkilled and resumed: ${killed}")
endif()
message("${steps} losses, ${steps_resumed} of them after it was killed and resumed: the same")
