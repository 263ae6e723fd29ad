#include "weft/run/checkpoint/reader.h"

#include <set>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/graph/tensor_parts.h"

namespace weft::run {

namespace fs = std::filesystem;

namespace {

void require_there(const fs::path& path, const Manifest& manifest) {
  std::error_code code;
  if (manifest.parts.ranks == 0 || fs::exists(path, code)) return;
  fail(ErrorKind::data,
       "'{}' is missing: {} ranks wrote this checkpoint in parts, and it is whole with all of them only; put the part "
       "back, or remove the checkpoint to go on from an older one",
       path.string(), manifest.parts.ranks);
}

std::set<std::string> names_in(const std::vector<std::unique_ptr<SafetensorsReader>>& parts) {
  std::set<std::string> names;
  for (const auto& part : parts)
    for (const auto& [name, type] : part->types()) names.insert(name);
  return names;
}

}  // namespace

Manifest checked_manifest(const fs::path& directory, bool with_optimizer) {
  const fs::path path = directory / kManifestFile;
  Manifest manifest = parse_manifest(read_text(path), path.string());
  for (const std::string& name : files_of(manifest, with_optimizer)) {
    const auto record = manifest.files.find(name);
    if (record == manifest.files.end())
      fail(ErrorKind::data, "'{}' is damaged: it does not list '{}'", path.string(), name);
    require_there(directory / name, manifest);
    check_file(directory / name, record->second);
  }
  return manifest;
}

CheckpointReader::CheckpointReader(const fs::path& directory, bool with_optimizer)
    : directory_(directory), manifest_(checked_manifest(directory, with_optimizer)) {
  open(TensorFile::model);
  if (with_optimizer) open(TensorFile::optimizer);
  std::map<TensorFile, std::vector<std::string>> names;
  for (const auto& [file, reader] : whole_)
    for (const auto& [name, type] : reader->types()) names[file].push_back(name);
  for (const auto& [file, readers] : parts_)
    for (const std::string& name : names_in(readers)) names[file].push_back(name);
  places_ = places_of(names);
}

void CheckpointReader::open(TensorFile file) {
  whole_[file] = std::make_unique<SafetensorsReader>(directory_ / name_of(file));
  if (!has_parts(file, manifest_.parts.shardings)) return;
  for (int64_t rank = 0; rank < manifest_.parts.ranks; ++rank)
    parts_[file].push_back(
        std::make_unique<SafetensorsReader>(directory_ / part_name_of(file, rank, manifest_.parts.ranks)));
}

std::vector<std::string> CheckpointReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, place] : places_) names.push_back(name);
  return names;
}

const TensorPlace& CheckpointReader::place(const std::string& name) const {
  const auto found = places_.find(name);
  if (found == places_.end()) fail(ErrorKind::usage, "'{}' has no state '{}'", directory_.string(), name);
  return found->second;
}

TensorType CheckpointReader::type(const std::string& name) const {
  const TensorPlace& at = place(name);
  const auto sharding = manifest_.parts.shardings.find(at.name);
  if (sharding == manifest_.parts.shardings.end()) {
    const auto& types = whole_.at(at.file)->types();
    if (const auto type = types.find(at.name); type != types.end()) return type->second;
    fail(ErrorKind::data, "'{}' is damaged: its manifest does not say how '{}' is split", directory_.string(), at.name);
  }
  TensorType type{DType::f32, part_shape(sharding->second), {}};
  for (const int file : files_with(sharding->second)) {
    const auto& types = parts_.at(at.file).at(static_cast<size_t>(file))->types();
    const auto held = types.find(at.name);
    if (held == types.end() || held->second.shape != type.shape)
      fail(ErrorKind::data, "'{}' is damaged: the part of rank {} has no '{}' {}", directory_.string(), file, at.name,
           to_string(type));
    type.dtype = held->second.dtype;
  }
  type.shape = sharding->second.whole;
  return type;
}

std::vector<int> CheckpointReader::files_with(const step::StateSharding& sharding) const {
  const auto parts = static_cast<size_t>(parts_of(sharding));
  std::vector<int> files = sharding.on;
  if (files.empty())
    for (size_t part = 0; part < parts; ++part) files.push_back(static_cast<int>(part));
  files.resize(parts);  // of a tensor that several ranks have whole the first
  return files;
}

Tensor CheckpointReader::read(const std::string& name) {
  const TensorPlace& at = place(name);
  const TensorType whole_type = type(name);
  const auto sharding = manifest_.parts.shardings.find(at.name);
  if (sharding == manifest_.parts.shardings.end()) return whole_.at(at.file)->read(at.name);
  Tensor tensor(whole_type);
  int64_t number = 0;
  for (const int file : files_with(sharding->second))
    put_part(tensor, parts_.at(at.file)[static_cast<size_t>(file)]->read(at.name), sharding->second, number++);
  return tensor;
}

}  // namespace weft::run
