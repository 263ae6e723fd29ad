#include "weft/run/initial_weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/interchange/safetensors/parameters.h"

namespace weft::run {

namespace {

/// "fc." of "fc.weight": the layer that the last trained parameter belongs to, which gives the logits.
std::string head_layer(const std::vector<models::ParameterSpec>& parameters) {
  for (size_t index = parameters.size(); index-- > 0;) {
    const std::string& name = parameters[index].name;
    if (parameters[index].trainable) return name.substr(0, name.rfind('.') + 1);
  }
  return "";
}

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

}  // namespace

std::vector<std::string> load_weights(State& state, const std::vector<models::ParameterSpec>& parameters,
                                      const std::filesystem::path& path, Head head) {
  const std::string layer = head == Head::may_differ ? head_layer(parameters) : "";
  std::vector<WantedParameter> wanted;
  for (const models::ParameterSpec& parameter : parameters)
    wanted.push_back({parameter.name, parameter.shape, !layer.empty() && parameter.name.starts_with(layer)});
  ImportedParameters imported = import_parameters(path, wanted);
  if (!imported.unused.empty())
    fail(ErrorKind::data,
         "'{}' holds {} tensors that the model has not, the first is '{}'; was it saved from another "
         "model, or with other options?",
         path.string(), imported.unused.size(), imported.unused.front());
  for (const auto& [name, tensor] : imported.tensors) require_finite(path, name, tensor);
  for (auto& [name, tensor] : imported.tensors) state.set(name, std::move(tensor));
  std::vector<std::string> notes;
  if (!imported.left_out.empty())
    notes.push_back(fmt::format("'{}' is for another number of classes: {} stay as they start", path.string(),
                                fmt::join(imported.left_out, " and ")));
  return notes;
}

}  // namespace weft::run
