#include "weft/interchange/safetensors/parameters.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <set>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/tensor/safetensors.h"

namespace weft {

namespace {

constexpr std::string_view kBatchCounter = "num_batches_tracked";

Tensor as_f32(Tensor tensor, const std::string& path, const std::string& name) {
  if (tensor.dtype() == DType::f32) return tensor;
  if (!is_floating(tensor.dtype()))
    fail(ErrorKind::data, "'{}': '{}' is {}, a parameter must be floating-point", path, name, name_of(tensor.dtype()));
  Tensor result(DType::f32, tensor.shape());
  float* target = result.data_as<float>();
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (tensor.dtype() == DType::f64) target[i] = static_cast<float>(tensor.data_as<double>()[i]);
    if (tensor.dtype() == DType::bf16) target[i] = bf16_to_f32(tensor.data_as<uint16_t>()[i]);
    if (tensor.dtype() == DType::f16) target[i] = f16_to_f32(tensor.data_as<uint16_t>()[i]);
  }
  return result;
}

/// The prefix under which the most wanted names are found; the shortest of those that find as many.
std::string find_prefix(const SafetensorsFile& file, const std::vector<WantedParameter>& wanted) {
  std::string best;
  size_t best_count = 0;
  const auto try_prefix = [&](const std::string& prefix) {
    size_t count = 0;
    for (const WantedParameter& parameter : wanted) count += file.tensors.count(prefix + parameter.name);
    if (count > best_count || (count == best_count && prefix.size() < best.size())) {
      best = prefix;
      best_count = count;
    }
  };
  try_prefix("");
  if (best_count == wanted.size()) return best;
  std::set<std::string> prefixes;  // any of the names may be missing
  for (const WantedParameter& parameter : wanted) {
    const std::string end = "." + parameter.name;
    for (const auto& [name, tensor] : file.tensors)
      if (name.ends_with(end)) prefixes.insert(name.substr(0, name.size() - end.size() + 1));
  }
  for (const std::string& prefix : prefixes) try_prefix(prefix);
  return best;
}

bool differs_in_first_dimension_only(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank() || a.rank() == 0) return false;
  for (int axis = 1; axis < a.rank(); ++axis)
    if (a[axis] != b[axis]) return false;
  return a[0] != b[0];
}

[[noreturn]] void fail_absent(const SafetensorsFile& file, const std::string& path, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [present, tensor] : file.tensors) names.push_back(present);
  fail(ErrorKind::data, "'{}' has no tensor '{}'{}", path, name, suggestion(name, names));
}

}  // namespace

/// torch.save writes zip archives, and pickles before PyTorch 1.6: 80 02 8a 0a, the protocol and a long.
void refuse_torch_files(const std::filesystem::path& path) {
  std::array<char, 4> start{};
  std::ifstream(path, std::ios::binary).read(start.data(), start.size());
  const std::string_view bytes(start.data(), start.size());
  if (bytes != std::string_view("PK\x03\x04", 4) && bytes != std::string_view("\x80\x02\x8a\x0a", 4)) return;
  fail(ErrorKind::data,
       "'{}' was written by torch.save; convert it with `tools/pytorch_to_safetensors.py {} OUT.safetensors`",
       path.string(), path.string());
}

ImportedParameters import_parameters(const std::filesystem::path& path, const std::vector<WantedParameter>& wanted,
                                     Match match) {
  refuse_torch_files(path);
  SafetensorsFile file = read_safetensors(path);
  const std::string shown = path.string();
  ImportedParameters imported;
  if (!wanted.empty()) imported.prefix = find_prefix(file, wanted);
  const bool has_head = std::any_of(wanted.begin(), wanted.end(), [&](const WantedParameter& parameter) {
    return parameter.is_head && file.tensors.contains(imported.prefix + parameter.name);
  });
  for (const WantedParameter& parameter : wanted) {
    const std::string name = imported.prefix + parameter.name;
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end()) {
      if (match == Match::all && (!parameter.is_head || has_head)) fail_absent(file, shown, name);
      imported.missing.push_back(parameter.name);
      continue;
    }
    const Shape shape = found->second.shape();
    if (shape == parameter.shape) {
      imported.tensors[parameter.name] = as_f32(std::move(found->second), shown, name);
    } else {
      const bool other_classes = parameter.is_head && differs_in_first_dimension_only(shape, parameter.shape);
      if (!other_classes && match == Match::all)
        fail(ErrorKind::data, "'{}': '{}' is {}, the model wants {}; was it saved from another model?", shown, name,
             to_string(shape), to_string(parameter.shape));
      imported.has_other_classes = imported.has_other_classes || other_classes;
      imported.missing.push_back(parameter.name);
      imported.left.push_back({name, shape});
    }
    file.tensors.erase(found);
  }
  if (imported.tensors.empty() && !wanted.empty()) fail_absent(file, shown, imported.prefix + wanted.front().name);
  for (const auto& [name, tensor] : file.tensors)
    if (!name.ends_with(kBatchCounter) && (match == Match::some || name.starts_with(imported.prefix)))
      imported.unused.push_back({name, tensor.shape()});
  return imported;
}

}  // namespace weft
