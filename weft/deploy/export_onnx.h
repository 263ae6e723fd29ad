// A run, or a model of the zoo with its first weights, as an ONNX model for other programs.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "weft/library/library.h"
#include "weft/onnx/file/model.h"
#include "weft/run/loaded_run.h"

namespace weft::deploy {

struct OnnxExportOptions {
  int64_t opset = 0;          // 0: the usual one
  int64_t batch = 0;          // 0: any
  bool preprocesses = false;  // reads pixels as bytes, and makes of them what the network reads
  std::string licence = {};   // for the metadata; empty: none
  std::string source = {};    // likewise: the run
};

/// Outputs "logits" of a network; of a task of its own what it computes. Error(usage) names what ONNX cannot express.
onnx::Model export_run(const Library& library, const run::LoadedRun& run, const OnnxExportOptions& options);
/// An ONNX model that weft imports, written anew: with other versions of its operators, or for one size of its batch.
/// `sizes`: of other open dimensions by their names. Names of inputs and outputs and the metadata stay.
onnx::Model export_file(const Library& library, onnx::Model model, const std::map<std::string, int64_t>& sizes,
                        const OnnxExportOptions& options);
/// The model's own input and options, with weights drawn from the seed.
onnx::Model export_model(const Library& library, const std::string& model, uint64_t seed,
                         const OnnxExportOptions& options);

}  // namespace weft::deploy
