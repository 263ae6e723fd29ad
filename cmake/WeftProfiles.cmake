# weft/device/default_profile.toml as numbers inside the library, so that an installed weft has it too. A test reads the
# file and compares.
set(profile_file ${CMAKE_CURRENT_SOURCE_DIR}/weft/device/default_profile.toml)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${profile_file})
file(READ ${profile_file} profile_text)
foreach(key name flops_per_second bytes_per_second narrow_speedup call_seconds)
  if(NOT profile_text MATCHES "(^|\n)${key} = ([^ \n]+)")
    message(FATAL_ERROR "weft/device/default_profile.toml has no line '${key} = ...'")
  endif()
  set(profile_${key} ${CMAKE_MATCH_2})
endforeach()
set(profile_source ${CMAKE_CURRENT_BINARY_DIR}/generated/default_profile.cpp)
file(CONFIGURE OUTPUT ${profile_source} @ONLY CONTENT [[
// Made by cmake/WeftProfiles.cmake from weft/device/default_profile.toml.
#include "weft/device/cost_model.h"

namespace weft {

DeviceProfile default_profile() {
  return {.name = @profile_name@,
          .flops_per_second = @profile_flops_per_second@,
          .bytes_per_second = @profile_bytes_per_second@,
          .narrow_speedup = @profile_narrow_speedup@,
          .call_seconds = @profile_call_seconds@};
}

}  // namespace weft
]])
target_sources(weft_setup PRIVATE ${profile_source})
