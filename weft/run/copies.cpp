#include "weft/run/copies.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/comm/exchange.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/run/checkpoint/store.h"
#include "weft/run/run_directory.h"

namespace weft::run {

namespace fs = std::filesystem;

namespace {

constexpr const char* kWhat = "copies of the run directory";
constexpr size_t kPieceBytes = size_t{4} << 20;  // of a file, in one exchange

bool leads_host(const comm::Communicator& ranks, int rank) {
  return ranks.members()[static_cast<size_t>(rank)].local_rank == 0;
}

/// What a keeper has.
struct Holding {
  // Steps of the newest whole checkpoint; kBegun without one, kNothing without a run directory.
  int64_t step = kNothing;
  std::string problem = {};                      // why no checkpoint is whole, where there are some
  std::map<std::string, FileRecord> files = {};  // by their path in the directory
  static constexpr int64_t kNothing = -2, kBegun = -1;
};

FileRecord record_of(const fs::path& path) {
  const std::vector<uint8_t> bytes = read_bytes(path);
  return {.bytes = bytes.size(), .checksum = crc32_of(bytes.data(), bytes.size())};
}

void add_files(Holding& holding, const fs::path& directory, const fs::path& folder) {
  std::error_code code;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory / folder, code)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file(code) || name.find(".tmp-") != name.npos) continue;
    holding.files[(folder / name).string()] = record_of(entry.path());
  }
}

Holding look(const fs::path& path) {
  Holding holding;
  std::error_code code;
  if (!fs::exists(path / "spec.toml", code)) return holding;
  holding.step = Holding::kBegun;
  const RunDirectory directory = RunDirectory::open(path);
  const CheckpointStore store(directory.checkpoints(), /*keep=*/1);
  store.put_back();
  add_files(holding, path, "");
  add_files(holding, path, fs::relative(directory.tensorboard(), path));
  try {
    const std::optional<Checkpoint> newest = store.read_newest([](const std::string&) {});
    if (!newest) return holding;
    holding.step = newest->manifest.position.step;
    const fs::path checkpoints = fs::relative(directory.checkpoints(), path);
    add_files(holding, path, checkpoints / newest->path.filename());
    const fs::path best = fs::read_symlink(directory.checkpoints() / "best", code);
    if (!code && best.filename() != newest->path.filename()) add_files(holding, path, checkpoints / best.filename());
  } catch (const Error& error) {
    holding.problem = error.what();
  }
  return holding;
}

std::string print(const Holding& holding) {
  nlohmann::json files = nlohmann::json::object();
  for (const auto& [name, record] : holding.files) files[name] = {record.bytes, record.checksum};
  return nlohmann::json{{"step", holding.step}, {"problem", holding.problem}, {"files", files}}.dump();
}

Holding parse(const std::string& text) {
  const nlohmann::json root = nlohmann::json::parse(text);
  Holding holding{.step = root.at("step").get<int64_t>(), .problem = root.at("problem").get<std::string>()};
  for (const auto& [name, record] : root.at("files").items())
    holding.files[name] = {.bytes = record.at(0).get<uint64_t>(), .checksum = record.at(1).get<uint32_t>()};
  return holding;
}

/// A recipe that differs is that of another run, which a host keeps under the same path.
void require_one_run(const std::vector<Holding>& holdings, const comm::Communicator& ranks, const fs::path& directory) {
  const auto recipe = [](const Holding& holding) { return holding.files.at("spec.toml").checksum; };
  std::optional<size_t> first;
  for (size_t rank = 0; rank < holdings.size(); ++rank) {
    if (holdings[rank].step == Holding::kNothing) continue;
    if (!first) first = rank;
    if (recipe(holdings[rank]) != recipe(holdings[*first]))
      fail(
          ErrorKind::usage,
          "'{}' has another spec.toml on host '{}' than on host '{}': they are two runs; move the one away that is not "
          "to go on",
          directory.string(), ranks.members()[rank].host, ranks.members()[*first].host);
  }
}

/// The rank whose directory all take: the first with the newest checkpoint.
int source_of(const std::vector<Holding>& holdings, const fs::path& directory) {
  const auto newest = std::max_element(holdings.begin(), holdings.end(),
                                       [](const Holding& a, const Holding& b) { return a.step < b.step; });
  if (newest->step == Holding::kNothing)
    fail(ErrorKind::usage, "there is no run directory '{}' on any host; check the path", directory.string());
  if (newest->step == Holding::kBegun)
    for (const Holding& holding : holdings)
      if (!holding.problem.empty()) throw Error(ErrorKind::data, holding.problem);
  return static_cast<int>(newest - holdings.begin());
}

/// The files of `source` that `own` lacks or has otherwise. Of a checkpoint all or none: it appears whole.
std::set<std::string> missing_in(const Holding& own, const Holding& source) {
  std::set<std::string> missing;
  for (const auto& [name, record] : source.files) {
    const auto found = own.files.find(name);
    const bool is_same =
        found != own.files.end() && found->second.bytes == record.bytes && found->second.checksum == record.checksum;
    if (!is_same) missing.insert(name);
  }
  std::set<std::string> whole = missing;
  for (const std::string& name : missing) {
    const std::string folder = fs::path(name).parent_path().string();
    if (!folder.starts_with("checkpoints")) continue;
    for (const auto& [other, record] : source.files)
      if (fs::path(other).parent_path() == folder) whole.insert(other);
  }
  return whole;
}

/// The source's file, in pieces, to all ranks; those that want it write it. A checkpoint's files go to a folder of
/// their own first.
void send_file(comm::Communicator& ranks, int source, const fs::path& from, uint64_t bytes,
               const std::optional<fs::path>& to) {
  std::vector<uint8_t> content;
  std::optional<AtomicFile> file;
  comm::on_all_ranks(&ranks, kWhat, [&] {
    if (ranks.rank() == source) content = read_bytes(from);
    if (!to) return;
    make_directories(to->parent_path());
    file.emplace(*to);
  });
  content.resize(ranks.rank() == source ? bytes : std::min<uint64_t>(bytes, kPieceBytes));
  for (uint64_t at = 0; at < bytes; at += kPieceBytes) {
    const size_t size = std::min<uint64_t>(kPieceBytes, bytes - at);
    uint8_t* piece = content.data() + (ranks.rank() == source ? at : 0);
    comm::broadcast(ranks, source, std::as_writable_bytes(std::span(piece, size)), kWhat);
    comm::on_all_ranks(&ranks, kWhat, [&] {
      if (file) file->write(piece, size);
    });
  }
  comm::on_all_ranks(&ranks, kWhat, [&] {
    if (file) file->commit();
  });
}

/// Where a file that is on its way lies until its checkpoint is whole; other files go to their place at once.
fs::path place_of(const fs::path& directory, const std::string& name) {
  const fs::path path(name), folder = path.parent_path();
  if (folder.parent_path() != "checkpoints") return directory / path;
  return directory / "checkpoints" / CheckpointStore::unfinished_name(folder.filename().string()) / path.filename();
}

void make_whole(const fs::path& directory, const std::set<std::string>& received) {
  std::set<std::string> checkpoints;
  for (const std::string& name : received)
    if (const fs::path folder = fs::path(name).parent_path(); folder.parent_path() == "checkpoints")
      checkpoints.insert(folder.filename().string());
  for (const std::string& name : checkpoints) {
    std::error_code code;
    const fs::path target = directory / "checkpoints" / name;
    fs::remove_all(target, code);
    fs::rename(directory / "checkpoints" / CheckpointStore::unfinished_name(name), target, code);
    if (code) fail(ErrorKind::io, "cannot rename the copy of '{}': {}", target.string(), code.message());
    sync_directory(directory / "checkpoints");
  }
}

}  // namespace

bool keeps_directory(comm::Communicator* ranks, const fs::path& directory, bool copies) {
  if (ranks == nullptr || !copies) return comm::is_first(ranks);
  const bool leads = leads_host(*ranks, ranks->rank());
  const fs::path folder = fs::absolute(directory).lexically_normal().parent_path();
  const std::string mark = comm::decided_by_first(ranks, kWhat, [] {
    return fmt::format("{}-{}", getpid(), std::chrono::system_clock::now().time_since_epoch().count());
  });
  const auto probe = [&](int rank) { return folder / fmt::format(".weft-probe-{}-{}", mark, rank); };
  comm::on_all_ranks(ranks, kWhat, [&] {
    if (!leads) return;
    make_directories(folder);
    write_atomically(probe(ranks->rank()), "weft asks which ranks see this file\n");
  });
  bool keeps = leads;
  std::error_code ignored;
  for (int rank = 0; rank < ranks->rank(); ++rank)
    if (leads && leads_host(*ranks, rank) && fs::exists(probe(rank), ignored)) keeps = false;
  comm::barrier(*ranks, kWhat);
  if (leads) fs::remove(probe(ranks->rank()), ignored);
  return keeps;
}

void copy_newest(comm::Communicator& ranks, const fs::path& directory, bool keeps) {
  Holding own;
  comm::on_all_ranks(&ranks, kWhat, [&] {
    if (keeps) own = look(directory);
  });
  std::vector<Holding> holdings;
  for (const std::string& told : comm::all_gather(ranks, print(own), kWhat)) holdings.push_back(parse(told));
  int source = 0;
  comm::on_all_ranks(&ranks, kWhat, [&] {
    require_one_run(holdings, ranks, directory);
    source = source_of(holdings, directory);
  });
  const Holding& newest = holdings[static_cast<size_t>(source)];
  const std::set<std::string> mine = keeps ? missing_in(own, newest) : std::set<std::string>();
  std::set<std::string> wanted;
  for (const std::string& told : comm::all_gather(ranks, nlohmann::json(mine).dump(), kWhat))
    for (const auto& name : nlohmann::json::parse(told)) wanted.insert(name.get<std::string>());
  for (const std::string& name : wanted) {
    std::optional<fs::path> to;
    if (mine.count(name) != 0) to = place_of(directory, name);
    send_file(ranks, source, directory / name, newest.files.at(name).bytes, to);
  }
  comm::on_all_ranks(&ranks, kWhat, [&] {
    if (!keeps) return;
    make_whole(directory, mine);
    // A newer checkpoint is damaged here, or was made by ranks that are gone: none of it counts.
    if (newest.step >= 0) CheckpointStore(directory / "checkpoints", /*keep=*/1).set_damaged_aside(newest.step);
  });
}

}  // namespace weft::run
