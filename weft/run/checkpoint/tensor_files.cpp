#include "weft/run/checkpoint/tensor_files.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <set>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/step/micro_batches.h"
#include "weft/step/optimizers/ema.h"
#include "weft/step/optimizers/optimizer.h"
#include "weft/step/virtual_ranks.h"
#include "weft/tensor/safetensors.h"

namespace weft::run {

namespace fs = std::filesystem;

namespace {

constexpr const char* kTrainedSlot = "trained";
constexpr size_t kBytesAtOnce = size_t{4} << 20;  // of a file, that are in memory at once

bool is_slot(const std::string& name) { return name.starts_with(step::kSlotPrefix); }
TensorFile file_of(const std::string& state) { return is_slot(state) ? TensorFile::optimizer : TensorFile::model; }
const char* stem_of(TensorFile file) { return file == TensorFile::model ? "model" : "optimizer"; }

std::string average_of(const std::string& name) { return step::slot_name(step::kEmaSlot, name); }

/// As many as the processes of the moment want, and of no worth between steps.
bool is_left_out(const std::string& name) {
  return name.starts_with(step::slot_name(step::kShardSumSlot, "")) ||
         name.starts_with(step::slot_name(step::kMicroSumSlot, ""));
}

std::set<std::string> names_of(const State& state) {
  const std::vector<std::string> names = state.names();
  return {names.begin(), names.end()};
}

/// From the names in the file to the states.
std::map<std::string, std::string> entries_of(const std::set<std::string>& states, TensorFile file) {
  const bool slots = file == TensorFile::optimizer;
  std::map<std::string, std::string> sources;
  for (const std::string& name : states) {
    if (is_left_out(name)) continue;
    if (is_slot(name)) {
      if (slots && !name.starts_with(average_of(""))) sources[name] = name;
      continue;
    }
    const bool averaged = states.contains(average_of(name));
    if (!slots) sources[name] = averaged ? average_of(name) : name;
    if (slots && averaged) sources[step::slot_name(kTrainedSlot, name)] = name;
  }
  return sources;
}

void require_finite(const std::string& name, const Tensor& tensor, int64_t step) {
  const float* values = tensor.data_as<float>();
  for (int64_t index = 0; index < tensor.elements(); ++index)
    if (!std::isfinite(values[index]))
      fail(ErrorKind::numeric,
           "'{}' holds {} after step {}; no checkpoint of it was made: lower optimizer.learning_rate, or warm up with "
           "schedule.warmup_epochs",
           name, values[index], step);
}

}  // namespace

std::string name_of(TensorFile file) { return fmt::format("{}.safetensors", stem_of(file)); }

std::string part_name_of(TensorFile file, int64_t rank, int64_t ranks) {
  return fmt::format("{}.part-{:05}-of-{:05}.safetensors", stem_of(file), rank + 1, ranks);
}

std::vector<std::string> files_of(const Manifest& manifest, bool with_optimizer) {
  std::vector<std::string> names;
  for (const TensorFile file : {TensorFile::model, TensorFile::optimizer}) {
    if (file == TensorFile::optimizer && !with_optimizer) continue;
    names.push_back(name_of(file));
    if (!has_parts(file, manifest.parts.shardings)) continue;
    for (int64_t rank = 0; rank < manifest.parts.ranks; ++rank)
      names.push_back(part_name_of(file, rank, manifest.parts.ranks));
  }
  return names;
}

std::map<std::string, TensorPlace> places_of(const std::map<TensorFile, std::vector<std::string>>& names) {
  std::map<std::string, TensorPlace> places;
  for (const auto& [file, tensors] : names)
    for (const std::string& name : tensors) places[name] = {file, name};
  const std::string trained = step::slot_name(kTrainedSlot, "");
  for (const auto& [file, tensors] : names)
    for (const std::string& name : tensors) {
      if (!name.starts_with(trained)) continue;
      const std::string weight = name.substr(trained.size());
      places.erase(name);
      if (const auto average = places.find(weight); average != places.end())
        places[average_of(weight)] = average->second;
      places[weight] = {file, name};
    }
  return places;
}

step::Shardings shardings_in_files(const State& state, const step::Shardings& shardings) {
  step::Shardings in_files;
  std::set<std::string> states = names_of(state);
  for (const auto& [name, sharding] : shardings) states.insert(name);  // also those that other ranks hold
  for (const TensorFile file : {TensorFile::model, TensorFile::optimizer})
    for (const auto& [entry, source] : entries_of(states, file))
      if (const auto shared = shardings.find(source); shared != shardings.end())
        in_files.emplace(entry, shared->second);
  return in_files;
}

bool has_parts(TensorFile file, const step::Shardings& in_parts) {
  for (const auto& [name, sharding] : in_parts)
    if (file_of(name) == file) return true;
  return false;
}

FileRecord write_tensors(const fs::path& path, const State& state, TensorFile file, int64_t step,
                         const step::Shardings& in_parts, bool part, int rank) {
  std::map<std::string, std::string> sources = entries_of(names_of(state), file);
  std::erase_if(sources, [&](const auto& entry) {
    const auto found = in_parts.find(entry.first);
    if (found == in_parts.end()) return part;
    const std::vector<int>& holders = found->second.on;
    return !part || (!holders.empty() && std::find(holders.begin(), holders.end(), rank) == holders.end());
  });
  std::vector<SafetensorsEntry> entries;
  for (const auto& [entry, source] : sources)
    entries.push_back({entry, {state.type(source).dtype, state.type(source).shape, {}}});
  AtomicFile out(path);
  write_safetensors(out, entries, {{"format", "pt"}}, [&](const std::string& entry) {
    const std::string& name = sources.at(entry);
    Tensor plain = state.plain_view(name);
    if (plain.dtype() == DType::f32 && !name.starts_with(step::slot_name(step::kGradientSumSlot, "")))
      require_finite(name, plain, step);
    return plain;
  });
  out.commit();
  return {out.bytes(), out.checksum()};
}

void check_file(const fs::path& path, const FileRecord& record) {
  std::ifstream file(path, std::ios::binary);
  if (!file) read_bytes(path);  // which says why
  std::vector<char> piece(kBytesAtOnce);
  uint64_t bytes = 0;
  uint32_t checksum = 0;
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const auto got = static_cast<size_t>(file.gcount());
    checksum = crc32_of(piece.data(), got, checksum);
    bytes += got;
  }
  if (bytes != record.bytes)
    fail(ErrorKind::data, "'{}' has {} bytes, its manifest says {}: it is truncated or damaged", path.string(), bytes,
         record.bytes);
  if (checksum != record.checksum)
    fail(ErrorKind::data, "'{}' is damaged: its checksum differs from that in its manifest", path.string());
}

}  // namespace weft::run
