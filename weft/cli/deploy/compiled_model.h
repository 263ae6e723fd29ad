// What `weft compile` and `weft infer` share: a run, a model of the zoo or an ONNX file as a model to deploy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "weft/deploy/compile_model.h"

namespace weft::cli {

struct ModelSource {
  std::string model;                           // a run directory, an ONNX file, or a model of the library
  std::optional<std::string> checkpoint = {};  // of a run; nullopt: "auto"
  std::optional<uint64_t> seed = {};           // of the weights of a model of the library; nullopt: 0
};

/// What the graphs of a file may compute: what inference does, and what was added to the standard library.
OpRegistry ops_of_files(const Library& library);

/// Error(usage) where it is none of these, or has no use for the checkpoint or the seed.
engine::DeployedModel compiled_model(const Library& library, const ModelSource& source,
                                     deploy::CompileModelOptions options);

}  // namespace weft::cli
