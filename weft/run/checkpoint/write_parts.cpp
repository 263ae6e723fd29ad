#include "weft/run/checkpoint/write_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/comm/exchange.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/comm/patience.h"
#include "weft/graph/tensor_parts.h"
#include "weft/run/checkpoint/file_records.h"
#include "weft/run/checkpoint/send_file.h"
#include "weft/run/checkpoint/tensor_files.h"
#include "weft/step/states/state_holders.h"

namespace weft::run {

namespace fs = std::filesystem;

namespace {

using nlohmann::json;
constexpr std::string_view kParts = "parts of the checkpoint";

/// The unfinished checkpoint into which this rank writes: its own, or the first that it sees of those that others keep.
fs::path directory_of(const std::vector<std::string>& kept, const std::optional<UnfinishedDirectory>& own) {
  if (own) return own->path();
  std::error_code code;
  for (const std::string& directory : kept)
    if (!directory.empty() && fs::is_directory(directory, code)) return directory;
  fail(ErrorKind::io,
       "there is no '{}' here: ranks that share states all write into the run directory; put it on a file system that "
       "all hosts share, with --run, or let each host keep one, with --copies",
       fs::path(kept.front()).parent_path().string());
}

/// How the tensors of a checkpoint are divided into files.
struct Division {
  int64_t parts = 0, part = 0;  // of this rank
  bool writes = false;          // this rank
};

/// One axis splits all tensors, and each rank along it writes a part of each; else each rank has a file of its own, and
/// `in_files` says whose files have the parts of a tensor.
Division divide(const comm::Communicator& ranks, const Mesh& mesh, step::Shardings& in_files) {
  if (in_files.empty()) return {};
  const step::StateSharding& first = in_files.begin()->second;
  const std::vector<int> holders = holders_of(first, mesh);
  const bool has_one_axis = std::all_of(in_files.begin(), in_files.end(), [&](const auto& one) {
    return one.second.on.empty() && parts_of(one.second) > 1 && holders_of(one.second, mesh) == holders;
  });
  if (has_one_axis)
    return {static_cast<int64_t>(holders.size()), coordinate_of(first, mesh, ranks.rank()),
            std::find(holders.begin(), holders.end(), ranks.rank()) != holders.end()};
  for (auto& [name, sharding] : in_files) {
    sharding.on = holders_of(sharding, mesh);
    check(std::is_sorted(sharding.on.begin(), sharding.on.end()), "axes that split a tensor in the order of the mesh");
  }
  return {ranks.size(), ranks.rank(), true};
}

/// This rank's part of each file that has any. What it wrote.
FileRecords write_own(const fs::path& directory, const State& state, int64_t step, const Division& division,
                      const step::Shardings& in_parts) {
  FileRecords records;
  if (!division.writes) return records;
  for (const TensorFile file : {TensorFile::model, TensorFile::optimizer}) {
    if (!has_parts(file, in_parts)) continue;
    const std::string name = part_name_of(file, division.part, division.parts);
    records[name] =
        write_tensors(directory / name, state, file, step, in_parts, /*part=*/true, static_cast<int>(division.part));
  }
  return records;
}

/// To each directory that is kept, the parts that ranks of other hosts have written.
void share_parts(comm::Communicator& ranks, const fs::path& directory, bool keeps,
                 const std::vector<FileRecords>& written) {
  json lacking = json::array();
  std::error_code code;
  for (const auto& files : written)
    for (const auto& [name, record] : files)
      if (keeps && !fs::exists(directory / name, code)) lacking.push_back(name);
  std::set<std::string> wanted;
  for (const std::string& told : comm::all_gather(ranks, lacking.dump(), kParts))
    for (const json& name : json::parse(told)) wanted.insert(name.get<std::string>());
  for (int rank = 0; rank < ranks.size(); ++rank)
    for (const auto& [name, record] : written[static_cast<size_t>(rank)]) {
      if (!wanted.contains(name)) continue;
      const fs::path file = directory / name;
      send_file(ranks, rank, file, record, keeps && !fs::exists(file, code) ? std::optional(file) : std::nullopt,
                kParts);
    }
}

}  // namespace

void write_in_parts(comm::Communicator& ranks, CheckpointStore* store, const State& state, Manifest manifest,
                    const step::Shardings& shardings, const Mesh& mesh) {
  step::Shardings in_files = shardings_in_files(state, shardings);
  const Division division = divide(ranks, mesh, in_files);
  std::optional<UnfinishedDirectory> unfinished;
  manifest.files.clear();
  manifest.parts = {.ranks = division.parts, .shardings = std::move(in_files)};
  const std::string told =
      comm::decided_by_first(&ranks, "checkpoint", [&] { return std::to_string(manifest.position.step); });
  const int64_t step = std::stoll(told);
  comm::on_all_ranks(&ranks, "checkpoint", [&] {
    if (store != nullptr) unfinished.emplace(store->begin(step));
  });
  const std::vector<std::string> kept =
      comm::all_gather(ranks, unfinished ? unfinished->path().string() : std::string(), kParts);
  fs::path directory;
  FileRecords own;
  comm::on_all_ranks(&ranks, kParts, [&] {
    directory = directory_of(kept, unfinished);
    own = write_own(directory, state, step, division, manifest.parts.shardings);
    if (store != nullptr) CheckpointStore::write_whole(directory, state, manifest);
  });
  std::vector<FileRecords> written;
  for (const std::string& told_files : comm::all_gather(ranks, print(own), kParts))
    written.push_back(parse_files(told_files));
  if (std::count(kept.begin(), kept.end(), std::string()) + 1 < ranks.size())
    share_parts(ranks, directory, store != nullptr, written);
  comm::on_all_ranks(&ranks, "checkpoint", [&] {
    if (store == nullptr) return;
    for (const auto& files : written) manifest.files.insert(files.begin(), files.end());
    store->finish(std::move(*unfinished), manifest);
  });
}

}  // namespace weft::run
