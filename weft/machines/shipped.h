// The device and cluster files that come with weft: machines/devices/*.toml and machines/clusters/*.toml of the
// project, as texts inside the library, so that an installed weft has them too.
#pragma once

#include <string>
#include <vector>

namespace weft::machines {

struct ShippedFile {
  std::string name;  // without .toml: "v100_sxm2_16gb"
  std::string text;
};

/// By name, ascending.
const std::vector<ShippedFile>& shipped_devices();
const std::vector<ShippedFile>& shipped_clusters();

}  // namespace weft::machines
