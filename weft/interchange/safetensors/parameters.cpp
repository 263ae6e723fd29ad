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

using TensorTypes = std::map<std::string, TensorType>;

Tensor as_f32(Tensor tensor) {
  if (tensor.dtype() == DType::f32) return tensor;
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
std::string find_prefix(const TensorTypes& file, const std::vector<WantedParameter>& wanted) {
  std::string best;
  size_t best_count = 0;
  const auto try_prefix = [&](const std::string& prefix) {
    size_t count = 0;
    for (const WantedParameter& parameter : wanted) count += file.count(prefix + parameter.name);
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
    for (const auto& [name, type] : file)
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

[[noreturn]] void fail_absent(const TensorTypes& file, const std::string& path, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [present, type] : file) names.push_back(present);
  fail(ErrorKind::data, "'{}' has no tensor '{}'{}", path, name, suggestion(name, names));
}

/// `file`: the types in the file at `shown`, of which those that are not taken remain.
MatchedParameters match_parameters(TensorTypes file, const std::string& shown,
                                   const std::vector<WantedParameter>& wanted, Match match) {
  MatchedParameters matched;
  if (!wanted.empty()) matched.prefix = find_prefix(file, wanted);
  const bool has_head = std::any_of(wanted.begin(), wanted.end(), [&](const WantedParameter& parameter) {
    return parameter.is_head && file.contains(matched.prefix + parameter.name);
  });
  for (const WantedParameter& parameter : wanted) {
    const std::string name = matched.prefix + parameter.name;
    const auto found = file.find(name);
    if (found == file.end()) {
      if (match == Match::all && (!parameter.is_head || has_head)) fail_absent(file, shown, name);
      matched.missing.push_back(parameter.name);
      continue;
    }
    const auto& [dtype, shape, layout] = found->second;
    if (shape == parameter.shape) {
      if (!is_floating(dtype))
        fail(ErrorKind::data, "'{}': '{}' is {}, a parameter must be floating-point", shown, name, name_of(dtype));
      matched.taken.push_back({parameter.name, shape});
    } else {
      const bool other_classes = parameter.is_head && differs_in_first_dimension_only(shape, parameter.shape);
      if (!other_classes && match == Match::all)
        fail(ErrorKind::data, "'{}': '{}' is {}, the model wants {}; was it saved from another model?", shown, name,
             to_string(shape), to_string(parameter.shape));
      matched.has_other_classes = matched.has_other_classes || other_classes;
      matched.missing.push_back(parameter.name);
      matched.left.push_back({name, shape});
    }
    file.erase(found);
  }
  if (matched.taken.empty() && !wanted.empty()) fail_absent(file, shown, matched.prefix + wanted.front().name);
  for (const auto& [name, type] : file)
    if (!name.ends_with(kBatchCounter) && (match == Match::some || name.starts_with(matched.prefix)))
      matched.unused.push_back({name, type.shape});
  return matched;
}

/// After the name of a file of which is known that torch.save has not written it.
const std::filesystem::path& readable(const std::filesystem::path& path) {
  refuse_torch_files(path);
  return path;
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

ParameterReader::ParameterReader(const std::filesystem::path& path, const std::vector<WantedParameter>& wanted,
                                 Match match)
    : file_(readable(path)), matched_(match_parameters(file_.types(), path.string(), wanted, match)) {}

Tensor ParameterReader::read(const std::string& name) { return as_f32(file_.read(matched_.prefix + name)); }

ImportedParameters import_parameters(const std::filesystem::path& path, const std::vector<WantedParameter>& wanted,
                                     Match match) {
  ParameterReader reader(path, wanted, match);
  ImportedParameters imported;
  static_cast<MatchedParameters&>(imported) = reader.matched();
  for (const NamedShape& parameter : imported.taken) imported.tensors[parameter.name] = reader.read(parameter.name);
  return imported;
}

}  // namespace weft
