#include "weft/run/checkpoint/write_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "weft/base/error.h"
#include "weft/comm/exchange.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/comm/patience.h"
#include "weft/graph/tensor_parts.h"
#include "weft/run/checkpoint/tensor_files.h"
#include "weft/step/states/state_holders.h"

namespace weft::run {

namespace fs = std::filesystem;

namespace {

using nlohmann::json;
constexpr std::string_view kParts = "parts of the checkpoint";

void require_seen(const fs::path& directory) {
  std::error_code code;
  if (fs::is_directory(directory, code)) return;
  fail(ErrorKind::io,
       "there is no '{}' here: ranks that share states all write into the run directory; put it on a file system that "
       "all hosts share, with --run",
       directory.parent_path().string());
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
  for (auto& [name, sharding] : in_files) sharding.on = holders_of(sharding, mesh);
  return {ranks.size(), ranks.rank(), true};
}

/// This rank's part of each file that has any. What it wrote, as JSON.
std::string write_own(const fs::path& directory, const State& state, int64_t step, const Division& division,
                      const step::Shardings& in_parts) {
  json records = json::object();
  if (!division.writes) return records.dump();
  for (const TensorFile file : {TensorFile::model, TensorFile::optimizer}) {
    if (!has_parts(file, in_parts)) continue;
    const std::string name = part_name_of(file, division.part, division.parts);
    const FileRecord record =
        write_tensors(directory / name, state, file, step, in_parts, /*part=*/true, static_cast<int>(division.part));
    records[name] = {{"bytes", record.bytes}, {"crc32", record.checksum}};
  }
  return records.dump();
}

}  // namespace

void write_in_parts(comm::Communicator& ranks, CheckpointStore* store, const State& state, Manifest manifest,
                    const step::Shardings& shardings, const Mesh& mesh) {
  step::Shardings in_files = shardings_in_files(state, shardings);
  const Division division = divide(ranks, mesh, in_files);
  std::optional<UnfinishedDirectory> unfinished;
  manifest.files.clear();
  manifest.parts = {.ranks = division.parts, .shardings = std::move(in_files)};
  const std::string told = comm::decided_by_first(&ranks, "checkpoint", [&] {
    unfinished.emplace(store->begin(manifest.position.step));
    return json{{"directory", unfinished->path().string()}, {"step", manifest.position.step}}.dump();
  });
  const fs::path directory = json::parse(told).at("directory").get<std::string>();
  const auto step = json::parse(told).at("step").get<int64_t>();
  std::string own;
  comm::on_all_ranks(&ranks, kParts, [&] {
    require_seen(directory);
    own = write_own(directory, state, step, division, manifest.parts.shardings);
    if (store != nullptr) CheckpointStore::write_whole(directory, state, manifest);
  });
  const std::vector<std::string> written = comm::gather(ranks, own, kParts);
  comm::on_all_ranks(&ranks, "checkpoint", [&] {
    if (store == nullptr) return;
    for (const std::string& text : written) {
      const json records = json::parse(text);
      for (const auto& [name, record] : records.items())
        manifest.files[name] = {record.at("bytes").get<uint64_t>(), record.at("crc32").get<uint32_t>()};
    }
    store->finish(std::move(*unfinished), manifest);
  });
}

}  // namespace weft::run
