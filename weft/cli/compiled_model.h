// What `weft compile` and `weft infer` share: a run, a model of the zoo or an ONNX file as a model to deploy.
#pragma once

#include <cstdint>
#include <string>

#include "weft/deploy/compile_model.h"

namespace weft::cli {

struct ModelSource {
  std::string model;                // a run directory, an ONNX file, or a model of the library
  std::string checkpoint = "auto";  // of a run
  uint64_t seed = 0;                // of the weights of a model of the library
};

/// Error(usage) where it is none of these.
engine::DeployedModel compiled_model(const Library& library, const ModelSource& source,
                                     deploy::CompileModelOptions options);

}  // namespace weft::cli
