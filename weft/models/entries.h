// One function per family of models, each in the file of its name; model.cpp lists them.
#pragma once

#include "weft/models/model.h"

namespace weft::models {

ModelEntry mlp_entry();
ModelEntry lenet5_entry();
ModelEntry resnet9_entry();
ModelEntry resnet18_entry();
ModelEntry resnet50_entry();
ModelEntry transformer_lm_entry();

}  // namespace weft::models
