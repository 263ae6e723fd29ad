#include "weft/run/checkpoint/write_parts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "weft/base/error.h"
#include "weft/comm/exchange.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/comm/patience.h"
#include "weft/run/checkpoint/tensor_files.h"

namespace weft::run {

namespace fs = std::filesystem;

namespace {

using nlohmann::json;
constexpr std::string_view kParts = "parts of the checkpoint";

void require_seen(const fs::path& directory) {
  std::error_code code;
  if (fs::is_directory(directory, code)) return;
  fail(ErrorKind::io,
       "there is no '{}' here: with shard.zero or mesh.pipeline all ranks write into the run directory; put it on a "
       "file "
       "system that all hosts share, with --run",
       directory.parent_path().string());
}

/// This rank's part of each file that has any. What it wrote, as JSON.
std::string write_own(const fs::path& directory, const State& state, int64_t step, const comm::Communicator& ranks,
                      const step::Shardings& in_parts) {
  json records = json::object();
  for (const TensorFile file : {TensorFile::model, TensorFile::optimizer}) {
    if (!has_parts(file, in_parts)) continue;
    const std::string name = part_name_of(file, ranks.rank(), ranks.size());
    const FileRecord record = write_tensors(directory / name, state, file, step, in_parts, /*part=*/true, ranks.rank());
    records[name] = {{"bytes", record.bytes}, {"crc32", record.checksum}};
  }
  return records.dump();
}

}  // namespace

void write_in_parts(comm::Communicator& ranks, CheckpointStore* store, const State& state, Manifest manifest,
                    const step::Shardings& shardings) {
  std::optional<UnfinishedDirectory> unfinished;
  manifest.files.clear();
  manifest.parts = {.ranks = ranks.size(), .shardings = shardings_in_files(state, shardings)};
  const std::string told = comm::decided_by_first(&ranks, "checkpoint", [&] {
    unfinished.emplace(store->begin(manifest.position.step));
    return json{{"directory", unfinished->path().string()}, {"step", manifest.position.step}}.dump();
  });
  const fs::path directory = json::parse(told).at("directory").get<std::string>();
  const auto step = json::parse(told).at("step").get<int64_t>();
  std::string own;
  comm::on_all_ranks(&ranks, kParts, [&] {
    require_seen(directory);
    own = write_own(directory, state, step, ranks, manifest.parts.shardings);
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
