# machines/{devices,clusters}/*.toml as texts inside the library, so that an installed weft has them too.
set(machine_lists "")
foreach(kind devices clusters)
  file(GLOB machine_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/machines/${kind}/*.toml)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${machine_files})
  set(machine_entries "")
  foreach(file ${machine_files})
    cmake_path(GET file STEM name)
    file(READ ${file} text)
    string(APPEND machine_entries "      {\"${name}\", R\"machine(${text})machine\"},\n")
  endforeach()
  string(APPEND machine_lists "const std::vector<ShippedFile>& shipped_${kind}() {\n"
         "  static const std::vector<ShippedFile> files{\n${machine_entries}  };\n  return files;\n}\n\n")
endforeach()
set(machine_source ${CMAKE_CURRENT_BINARY_DIR}/generated/shipped_machines.cpp)
file(CONFIGURE OUTPUT ${machine_source} @ONLY CONTENT [[
// Made by cmake/WeftMachines.cmake from machines/.
#include "weft/machines/shipped.h"

namespace weft::machines {

@machine_lists@}  // namespace weft::machines
]])
target_sources(weft_setup PRIVATE ${machine_source})
