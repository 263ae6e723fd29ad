# Batches: several sources compiled as one, so that the headers they share are read once. A clean build takes a third of
# the time; after a change of one source its batch is compiled, which is why the preset `dev` builds without batches.
#
# weft_batch_sources(TARGET SIZE) puts the sources of the target into batches of SIZE, folder by folder; subfolders, which
# share a namespace, count with their folder. Sources with flags of their own stay apart (WEFT_APART), kernels above all:
# what a compiler makes of their loops must not depend on neighbours.
option(WEFT_UNITY "Compile the sources of a folder in batches" OFF)

function(weft_batch_sources target size)
  if(NOT WEFT_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  set(folders "")
  list(FILTER sources EXCLUDE REGEX "^\\$<")  # objects of another target
  foreach(source ${sources})
    get_source_file_property(is_apart ${source} WEFT_APART)
    if(is_apart)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      continue()
    endif()
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE path)
    string(REGEX MATCH "^[^/]+/[^/]+" folder ${path})
    string(MAKE_C_IDENTIFIER "${folder}" key)
    if(NOT DEFINED count_${key})
      set(count_${key} 0)
    endif()
    math(EXPR batch "${count_${key}} / ${size}")
    math(EXPR count_${key} "${count_${key}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${key}_${batch}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # What lies in a batch is no main file to gcc: a class there may not have members of its own file's types.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()
