// A run, a model of the zoo or an ONNX model as what is deployed: inference graphs with their constants
// (engine/deployed_model.h).
//
// Where the graph of any batch has one form, one graph is for all sizes of the batch. It is found from the graphs of
// two sizes and checked against those of others, small and large (graph/generalize.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "weft/engine/deployed_model.h"
#include "weft/library/library.h"
#include "weft/onnx/file/model.h"
#include "weft/run/loaded_run.h"

namespace weft::deploy {

struct CompileModelOptions {
  std::vector<int64_t> batches = {};             // a graph for each; empty: one for any
  std::vector<int64_t> otherwise_batches = {};   // the same, where no graph is for any size
  DType precision = DType::f32;                  // that the model asks its engine for
  std::map<std::string, int64_t> sizes = {};     // of other dimensions that an ONNX model leaves open, by their names
  std::vector<float> mean = {}, deviation = {};  // of the channels of pictures, where the model says nothing else
  int64_t resize = 0;                            // of their shorter side, likewise; 0: fitted to what the model reads
  bool decodes_exactly = true;                   // of JPEG pictures, likewise
  bool requantizes_fixed = false;                // sums of an ONNX model's integers, by multiplier and shift
  std::vector<std::string> classes = {};         // names, where the model has none
  std::string licence = {}, source = {};         // for the metadata; empty: none
};

/// What `weft predict` computes: "probabilities", "values", or the answer of the run's task. Error(usage) where the
/// batch cannot be left open.
engine::DeployedModel compile_run(const Library& library, const run::LoadedRun& run,
                                  const CompileModelOptions& options);
/// The model's own input and options, with weights drawn from the seed.
engine::DeployedModel compile_zoo_model(const Library& library, const std::string& name, uint64_t seed,
                                        const CompileModelOptions& options);
/// Error(usage) too where the model is no single graph, is for another batch, or has an open dimension that nobody
/// binds; where a bound name is none of it.
engine::DeployedModel compile_onnx(const Library& library, onnx::Model model, const CompileModelOptions& options);

}  // namespace weft::deploy
