// The files of a checkpoint that hold tensors: which state is in which, and how they are written.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "weft/device/state.h"
#include "weft/run/checkpoint/manifest.h"

namespace weft::run {

/// The model's file holds parameters and statistics, or their averages where there are any; the optimiser's file its
/// slots and, beside averages, the weights as "optimizer/trained/NAME". So every reader of the model's file uses the
/// averages.
enum class TensorFile { model, optimizer };

inline constexpr const char* kManifestFile = "manifest.json";
/// "model.safetensors"
std::string name_of(TensorFile file);
/// Of what one of several ranks holds a part of, number `rank`: "optimizer.part-00002-of-00004.safetensors"
std::string part_name_of(TensorFile file, int64_t rank, int64_t ranks);

/// The files of tensors that a checkpoint has, with the parts.
std::vector<std::string> files_of(const Manifest& manifest, bool with_optimizer);

/// Which tensor of which file each state is, by state, where the files hold `names`.
struct TensorPlace {
  TensorFile file;
  std::string name;
};
std::map<std::string, TensorPlace> places_of(const std::map<TensorFile, std::vector<std::string>>& names);

/// Of the tensors of the files those of which the state is in `shardings`, which is by state.
step::Shardings shardings_in_files(const State& state, const step::Shardings& shardings);

/// Writes what the state holds for the file: the tensors in `in_parts` if it is that of a `part`, else all others. Of
/// what some ranks alone hold the first of them writes it: `rank` is this one.
/// Error(numeric) naming the state and the step where a number is not finite.
FileRecord write_tensors(const std::filesystem::path& path, const State& state, TensorFile file, int64_t step,
                         const step::Shardings& in_parts = {}, bool part = false, int rank = 0);
/// Whether a rank's part of this file holds anything.
bool has_parts(TensorFile file, const step::Shardings& in_parts);

/// Error(data) where the file has not the record's size and checksum, Error(io) where it cannot be read.
void check_file(const std::filesystem::path& path, const FileRecord& record);

}  // namespace weft::run
