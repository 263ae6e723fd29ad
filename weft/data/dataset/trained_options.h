// Options of data that a trained model reads: what training has fixed can be said again, not changed.
#pragma once

#include <cstdint>
#include <string>

#include "weft/data/dataset/data_spec.h"

namespace weft::data {

/// Error(usage) where the option is given and is not what the model was trained with.
void require_trained(const SpecOptions& options, const std::string& name, const std::string& trained);
void require_trained(const SpecOptions& options, const std::string& name, int64_t trained);

}  // namespace weft::data
