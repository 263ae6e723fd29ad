# weft/device/default_profile.toml as a text inside the library, so that an installed weft has it too.
set(profile_file ${CMAKE_CURRENT_SOURCE_DIR}/weft/device/default_profile.toml)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${profile_file})
file(READ ${profile_file} profile_text)
set(profile_source ${CMAKE_CURRENT_BINARY_DIR}/generated/default_profile.cpp)
file(CONFIGURE OUTPUT ${profile_source} @ONLY CONTENT [[
// Made by cmake/WeftProfiles.cmake from weft/device/default_profile.toml.
#include "weft/device/cost_model.h"

namespace weft {

DeviceProfile default_profile() {
  return parse_device_profile(R"profile(@profile_text@)profile", "weft/device/default_profile.toml");
}

}  // namespace weft
]])
target_sources(weft_setup PRIVATE ${profile_source})
