// Loads initial weights from a file instead of drawing them from the seed, to continue from a network trained
// elsewhere.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "weft/device/state.h"
#include "weft/interchange/safetensors/parameters.h"
#include "weft/models/model.h"
#include "weft/spec/run_spec.h"

namespace weft::run {

/// "fc." of "fc.weight": the layer that the last trained parameter belongs to, which gives the logits.
std::string head_layer(const std::vector<models::ParameterSpec>& parameters);

enum class Head {
  must_fit,
  may_differ,  // with another number of classes, the last layer stays as it is in the state
  fresh,       // it stays as it is in any case
};

/// What became of the tensors of a file.
struct InitialWeights {
  struct Tensor {
    std::string name;  // of the model, or, where it is left, of the file
    Shape shape;
  };
  std::string file, prefix;
  std::vector<Tensor> taken, left, missing;
  bool has_other_classes = false;  // the last layer is missing for that reason

  /// A line or two for the user: how many, and the names of those that are left or missing where they are few or
  /// `with_all_names`, which lists what was taken as well.
  std::vector<std::string> describe(bool with_all_names) const;
};
/// For the run directory: all of it, as JSON.
std::string print_initial_weights(const InitialWeights& weights);

struct LoadOptions {
  Head head = Head::must_fit;
  bool partial = false;  // tensors may be missing, and others be there
};

/// What the recipe says: init_head, init_partial.
LoadOptions load_options_of(const spec::RunSpec& spec);

/// A safetensors file with PyTorch's names that is read one tensor at a time.
class InitialWeightsReader {
 public:
  /// Error(data) where the file lacks a tensor, has one too many, or has one of another shape, unless `options` allow
  /// it; where one holds NaN or infinity, with its name.
  InitialWeightsReader(const std::vector<models::ParameterSpec>& parameters, const std::filesystem::path& path,
                       const LoadOptions& options = {});

  const InitialWeights& weights() const { return weights_; }
  bool has(const std::string& parameter) const { return taken_.contains(parameter); }
  Tensor read(const std::string& parameter) { return reader_.read(parameter); }

 private:
  ParameterReader reader_;
  InitialWeights weights_;
  std::set<std::string> taken_;
};

/// Replaces the parameters and running statistics in `state` by those of the file, with the errors of
/// InitialWeightsReader.
InitialWeights load_weights(State& state, const std::vector<models::ParameterSpec>& parameters,
                            const std::filesystem::path& path, const LoadOptions& options = {});

}  // namespace weft::run
