#include "weft/run/initial_weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/interchange/safetensors/parameters.h"
#include "weft/run/checkpoint/manifest.h"

namespace weft::run {

std::string head_layer(const std::vector<models::ParameterSpec>& parameters) {
  for (size_t index = parameters.size(); index-- > 0;) {
    const std::string& name = parameters[index].name;
    if (parameters[index].trainable) return name.substr(0, name.rfind('.') + 1);
  }
  return "";
}

namespace {

void require_finite(const std::filesystem::path& path, const std::string& name, const Tensor& tensor) {
  if (tensor.dtype() != DType::f32) return;
  const float* const values = tensor.data_as<float>();
  const float* const end = values + tensor.elements();
  const float* const bad = std::find_if_not(values, end, [](float value) { return std::isfinite(value); });
  if (bad != end)
    fail(ErrorKind::data,
         "'{}': the tensor '{}' holds {} at element {}: the file is damaged, or its training diverged; take other "
         "weights",
         path.string(), name, *bad, bad - values);
}

/// The path. Error(usage) for the file of a checkpoint in parts, which has only what the ranks did not divide.
const std::filesystem::path& require_whole(const std::filesystem::path& path) {
  const std::filesystem::path checkpoint = path.parent_path(), store = checkpoint.parent_path();
  const int64_t ranks = store.filename() == "checkpoints" ? ranks_with_parts(checkpoint) : 0;
  if (ranks > 0)
    fail(ErrorKind::usage,
         "'{}' holds only what the {} ranks of its run did not divide; `weft export {} weights.safetensors` writes all "
         "weights into one file: name that one",
         path.string(), ranks, quoted_for_shell(store.parent_path().string()));
  return path;
}

constexpr const char* kPartialHint = "; --init-partial takes what fits";

/// "fc.weight (1000,512), fc.bias (1000)"
std::string names_of(const std::vector<InitialWeights::Tensor>& tensors) {
  std::string text;
  for (const InitialWeights::Tensor& tensor : tensors)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", tensor.name, to_string(tensor.shape));
  return text;
}

nlohmann::ordered_json to_json(const std::vector<InitialWeights::Tensor>& tensors) {
  auto list = nlohmann::ordered_json::array();
  for (const InitialWeights::Tensor& tensor : tensors)
    list.push_back({{"name", tensor.name}, {"shape", tensor.shape.dims()}});
  return list;
}

std::vector<WantedParameter> wanted_of(const std::vector<models::ParameterSpec>& parameters, Head head) {
  const std::string layer = head == Head::must_fit ? "" : head_layer(parameters);
  std::vector<WantedParameter> wanted;
  for (const models::ParameterSpec& parameter : parameters)
    wanted.push_back({parameter.name, parameter.shape, !layer.empty() && parameter.name.starts_with(layer)});
  return wanted;
}

}  // namespace

std::vector<std::string> InitialWeights::describe(bool with_all_names) const {
  constexpr size_t kFew = 6;
  std::vector<std::string> lines;
  const auto part = [&](const std::vector<Tensor>& tensors, const char* what, bool named) {
    const std::string names = named && !tensors.empty() ? ": " + names_of(tensors) : "";
    return fmt::format("{} {}{}", tensors.size(), what, names);
  };
  lines.push_back(fmt::format("'{}': {}; {}; {}", file, part(taken, "tensors taken", with_all_names),
                              part(left, "left in the file", with_all_names || left.size() <= kFew),
                              part(missing, "missing", with_all_names || missing.size() <= kFew)));
  if (has_other_classes) {
    std::vector<std::string> names;
    for (const Tensor& tensor : missing) names.push_back(tensor.name);
    lines.push_back(names.size() <= kFew ? fmt::format("'{}' is for another number of classes: {} stay as they start",
                                                       file, fmt::join(names, " and "))
                                         : fmt::format("'{}' is for another number of classes", file));
  } else if (!missing.empty()) {
    lines.push_back("the missing tensors start from random values by the seed");
  }
  return lines;
}

std::string print_initial_weights(const InitialWeights& weights) {
  const nlohmann::ordered_json root = {{"file", weights.file},
                                       {"prefix", weights.prefix},
                                       {"taken", to_json(weights.taken)},
                                       {"left", to_json(weights.left)},
                                       {"missing", to_json(weights.missing)}};
  return root.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

LoadOptions load_options_of(const spec::RunSpec& spec) {
  return {.head = spec.init_head == "fresh" ? Head::fresh : Head::may_differ, .partial = spec.init_partial};
}

InitialWeightsReader::InitialWeightsReader(const std::vector<models::ParameterSpec>& parameters,
                                           const std::filesystem::path& path, const LoadOptions& options)
    : reader_(require_whole(path), wanted_of(parameters, options.head), options.partial ? Match::some : Match::all),
      weights_{.file = path.string(), .prefix = reader_.matched().prefix, .taken = {}, .left = {}, .missing = {}} {
  const MatchedParameters& matched = reader_.matched();
  if (!matched.unused.empty() && !options.partial)
    fail(ErrorKind::data,
         "'{}' holds {} tensors that the model has not, the first is '{}'; was it saved from another "
         "model, or with other options?{}",
         path.string(), matched.unused.size(), matched.unused.front().name,
         options.head == Head::must_fit ? "" : kPartialHint);
  weights_.has_other_classes = matched.has_other_classes;
  const std::string fresh = options.head == Head::fresh ? head_layer(parameters) : "";
  std::map<std::string, Shape> shapes;
  for (const models::ParameterSpec& parameter : parameters) shapes[parameter.name] = parameter.shape;
  for (const std::string& name : matched.missing) weights_.missing.push_back({name, shapes.at(name)});
  for (const NamedShape& tensor : matched.left) weights_.left.push_back({tensor.name, tensor.shape});
  for (const NamedShape& tensor : matched.taken) {
    if (!fresh.empty() && tensor.name.starts_with(fresh)) {
      weights_.missing.push_back({tensor.name, tensor.shape});
      weights_.left.push_back({matched.prefix + tensor.name, tensor.shape});
      continue;
    }
    require_finite(path, tensor.name, reader_.read(tensor.name));
    weights_.taken.push_back({tensor.name, tensor.shape});
    taken_.insert(tensor.name);
  }
  for (const NamedShape& tensor : matched.unused) weights_.left.push_back({tensor.name, tensor.shape});
}

InitialWeights load_weights(State& state, const std::vector<models::ParameterSpec>& parameters,
                            const std::filesystem::path& path, const LoadOptions& options) {
  InitialWeightsReader file(parameters, path, options);
  for (const InitialWeights::Tensor& tensor : file.weights().taken) state.set(tensor.name, file.read(tensor.name));
  return file.weights();
}

}  // namespace weft::run
