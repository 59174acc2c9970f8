# Reading headers and instantiating templates takes far longer than translating our own few lines, so the sources of one
# folder are compiled as one (CMake's unity build, one group a folder). What follows: names in the anonymous namespaces
# of a folder's sources differ. -DTURNPOINT_UNITY=OFF compiles each source by itself, which is quicker after small edits;
# the presets debug and coverage do, so that both ways stay good.
option(TURNPOINT_UNITY "Compile the sources of a folder together" ON)

# turnpoint_unity(TARGET [ALONE regex...]): sources whose paths match one of the expressions stay by themselves.
function(turnpoint_unity target)
  cmake_parse_arguments(PARSE_ARGV 1 unity "" "" ALONE)
  if(NOT TURNPOINT_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    file(RELATIVE_PATH relative ${PROJECT_SOURCE_DIR} ${source})
    if(NOT relative MATCHES "\\.cpp$")
      continue()
    endif()
    set(alone FALSE)
    foreach(expression ${unity_ALONE})
      if(relative MATCHES "${expression}")
        set(alone TRUE)
      endif()
    endforeach()
    if(NOT alone)
      get_filename_component(folder ${relative} DIRECTORY)
      string(MAKE_C_IDENTIFIER "${folder}" folder)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
