# Compiles through ccache where it is installed. By itself it passes everything over that uses a precompiled header, and
# a second checkout finds nothing of the first; the settings that help are given with each call, so that nobody's
# configuration is touched. What a user has set, in a file or the environment, counts before ours.
find_program(TURNPOINT_CCACHE ccache)

function(turnpoint_ccache_launcher result)
  execute_process(COMMAND ${TURNPOINT_CCACHE} --show-config OUTPUT_VARIABLE shown ERROR_QUIET)
  set(settings "")
  foreach(setting "base_dir = |CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" "hash_dir = true|CCACHE_NOHASHDIR=1"
          "sloppiness = |CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime,locale")
    string(REPLACE "|" ";" setting "${setting}")
    list(GET setting 0 untouched)
    if(shown MATCHES "\\(default\\) ${untouched}\n")
      list(GET setting 1 ours)
      list(APPEND settings ${ours})
    endif()
  endforeach()
  if(settings)
    set(${result} ${CMAKE_COMMAND} -E env ${settings} ${TURNPOINT_CCACHE} PARENT_SCOPE)
  else()
    set(${result} ${TURNPOINT_CCACHE} PARENT_SCOPE)
  endif()
endfunction()

if(TURNPOINT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  turnpoint_ccache_launcher(CMAKE_CXX_COMPILER_LAUNCHER)
endif()
