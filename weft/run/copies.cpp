#include "weft/run/copies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/comm/exchange.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/run/checkpoint/send_file.h"
#include "weft/run/checkpoint/store.h"
#include "weft/run/held_copy.h"
#include "weft/run/run_directory.h"

namespace weft::run {

namespace fs = std::filesystem;

namespace {

constexpr const char* kWhat = "copies of the run directory";

bool leads_host(const comm::Communicator& ranks, int rank) {
  return ranks.members()[static_cast<size_t>(rank)].local_rank == 0;
}

std::string host_of(const comm::Communicator& ranks, int rank) {
  return ranks.members()[static_cast<size_t>(rank)].host;
}

/// Removes a file that asked a question, however that ends.
class Probe {
 public:
  explicit Probe(fs::path path) : path_(std::move(path)) {
    write_atomically(path_, "weft asks which ranks see this file\n");
  }
  ~Probe() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

 private:
  fs::path path_;
};

/// The lock on a run directory that may not be there yet; one that was made and got no run goes again.
class LockedPlace {
 public:
  explicit LockedPlace(fs::path path) : path_(std::move(path)) {
    std::error_code code;
    made_ = !fs::exists(path_, code);
    make_directories(path_);
    lock_ = RunDirectory::lock_at(path_);
  }
  ~LockedPlace() {
    std::error_code code;
    if (made_ && !fs::exists(path_ / "spec.toml", code)) fs::remove(path_, code);  // only where it is empty
  }
  LockedPlace(const LockedPlace&) = delete;
  LockedPlace& operator=(const LockedPlace&) = delete;
  std::shared_ptr<void> lock() const { return lock_; }

 private:
  fs::path path_;
  bool made_ = false;
  std::shared_ptr<void> lock_;
};

/// The rank whose directory decides: the first with the newest checkpoint.
int source_of(const std::vector<NewestCheckpoint>& found, const comm::Communicator& ranks, const fs::path& directory) {
  std::optional<int> source;
  for (int rank = 0; rank < static_cast<int>(found.size()); ++rank) {
    const NewestCheckpoint& one = found[static_cast<size_t>(rank)];
    if (!one.has_run) continue;
    if (!source) {
      source = rank;
      continue;
    }
    const NewestCheckpoint& newest = found[static_cast<size_t>(*source)];
    if (one.recipe != newest.recipe)
      fail(
          ErrorKind::usage,
          "'{}' has another spec.toml on host '{}' than on host '{}': they are two runs; move the one away that is not "
          "to go on",
          directory.string(), host_of(ranks, rank), host_of(ranks, *source));
    if (one.step > newest.step) source = rank;
  }
  if (!source) fail(ErrorKind::usage, "there is no run directory '{}' on any host; check the path", directory.string());
  if (found[static_cast<size_t>(*source)].step < 0)
    for (size_t rank = 0; rank < found.size(); ++rank)
      if (!found[rank].damaged.empty())
        fail(ErrorKind::data,
             "no checkpoint in '{}' is whole on any host (on host '{}': {}); start again in a new run "
             "directory",
             directory.string(), ranks.members()[rank].host, found[rank].damaged.front());
  return *source;
}

/// What each rank tells all others.
std::vector<FileRecords> tell_files(comm::Communicator& ranks, const FileRecords& mine) {
  std::vector<FileRecords> all;
  for (const std::string& told : comm::all_gather(ranks, print(mine), kWhat)) all.push_back(parse_files(told));
  return all;
}

/// The checkpoint on all keepers that have it not whole, or with other tensors than its source. The hosts that got it.
std::set<std::string> copy_checkpoint(comm::Communicator& ranks, const fs::path& directory, bool keeps, int64_t step,
                                      int preferred) {
  FileRecords mine;
  comm::on_all_ranks(&ranks, kWhat, [&] {
    if (keeps) mine = checkpoint_files(directory, step);
  });
  const std::vector<FileRecords> all = tell_files(ranks, mine);
  int source = preferred;
  if (all[static_cast<size_t>(source)].empty())
    source = static_cast<int>(std::find_if(all.begin(), all.end(), [](const auto& one) { return !one.empty(); }) -
                              all.begin());
  if (source == ranks.size()) return {};  // whole nowhere: what reads it will say so
  const FileRecords& files = all[static_cast<size_t>(source)];
  const bool lacks = keeps && !same_tensors(mine, files);
  std::set<std::string> receivers;
  const std::vector<std::string> told = comm::all_gather(ranks, lacks ? "lacks" : "", kWhat);
  for (int rank = 0; rank < ranks.size(); ++rank)
    if (!told[static_cast<size_t>(rank)].empty()) receivers.insert(host_of(ranks, rank));
  if (receivers.empty()) return receivers;
  const std::string name = CheckpointStore::directory_name(step);
  const fs::path checkpoints = directory / "checkpoints";
  const fs::path unfinished = checkpoints / CheckpointStore::unfinished_name(name);
  for (const auto& [file, record] : files)
    send_file(ranks, source, checkpoints / name / file, record, lacks ? std::optional(unfinished / file) : std::nullopt,
              kWhat);
  comm::on_all_ranks(&ranks, kWhat, [&] {
    if (lacks) CheckpointStore::make_whole(unfinished, checkpoints / name);
  });
  return receivers;
}

/// The other files of the source, where a keeper has them otherwise or not.
void copy_other_files(comm::Communicator& ranks, const fs::path& directory, bool keeps, int source) {
  FileRecords mine;
  comm::on_all_ranks(&ranks, kWhat, [&] {
    if (keeps) mine = other_files(directory);
  });
  const std::vector<FileRecords> all = tell_files(ranks, mine);
  const auto lacks = [](const FileRecords& own, const std::string& name, const FileRecord& record) {
    const auto found = own.find(name);
    return found == own.end() || found->second.bytes != record.bytes || found->second.checksum != record.checksum;
  };
  const std::vector<std::string> told = comm::all_gather(ranks, keeps ? "keeps" : "", kWhat);
  for (const auto& [name, record] : all[static_cast<size_t>(source)]) {
    bool wanted = false;
    for (size_t rank = 0; rank < all.size(); ++rank)
      wanted = wanted || (!told[rank].empty() && lacks(all[rank], name, record));
    if (!wanted) continue;
    send_file(ranks, source, directory / name, record,
              keeps && lacks(mine, name, record) ? std::optional(directory / name) : std::nullopt, kWhat);
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
  const auto probe_of = [&](int rank) { return folder / fmt::format(".weft-probe-{}-{}", mark, rank); };
  std::optional<Probe> probe;
  comm::on_all_ranks(ranks, kWhat, [&] {
    if (!leads) return;
    make_directories(folder);
    probe.emplace(probe_of(ranks->rank()));
  });
  bool keeps = leads;
  std::error_code ignored;
  for (int rank = 0; rank < ranks->rank(); ++rank)
    if (leads && leads_host(*ranks, rank) && fs::exists(probe_of(rank), ignored)) keeps = false;
  comm::barrier(*ranks, kWhat);
  return keeps;
}

std::shared_ptr<void> copy_newest(comm::Communicator& ranks, const fs::path& directory, bool keeps,
                                  const std::function<void(const std::string&)>& note) {
  std::optional<LockedPlace> place;
  NewestCheckpoint own;
  comm::on_all_ranks(&ranks, kWhat, [&] {
    if (!keeps) return;
    place.emplace(directory);
    own = find_newest(directory);
  });
  std::vector<NewestCheckpoint> found;
  for (const std::string& told : comm::all_gather(ranks, print(own), kWhat)) found.push_back(parse_newest(told));
  int source = 0;
  comm::on_all_ranks(&ranks, kWhat, [&] { source = source_of(found, ranks, directory); });
  const NewestCheckpoint& newest = found[static_cast<size_t>(source)];
  if (note)
    for (int rank = 0; rank < ranks.size(); ++rank)
      for (const std::string& line : found[static_cast<size_t>(rank)].damaged)
        note(fmt::format("on host '{}' a checkpoint is left out: {}", host_of(ranks, rank), line));
  copy_other_files(ranks, directory, keeps, source);
  if (newest.step < 0) return place ? place->lock() : nullptr;
  std::set<std::string> receivers = copy_checkpoint(ranks, directory, keeps, newest.step, source);
  if (newest.best && *newest.best != newest.step) copy_checkpoint(ranks, directory, keeps, *newest.best, source);
  if (note && !receivers.empty())
    note(fmt::format("the checkpoint of step {} goes from host '{}' to '{}'", newest.step, host_of(ranks, source),
                     fmt::join(receivers, "', '")));
  comm::on_all_ranks(&ranks, kWhat, [&] {
    if (keeps) CheckpointStore(directory / "checkpoints", /*keep=*/1).set_damaged_aside(newest.step);
  });
  return place ? place->lock() : nullptr;
}

void copy_first_file(comm::Communicator& ranks, const fs::path& file, bool keeps) {
  std::error_code code;
  const std::string told = comm::decided_by_first(
      &ranks, kWhat, [&] { return fs::exists(file, code) ? "+" + read_text(file) : std::string(); });
  comm::on_all_ranks(&ranks, kWhat, [&] {
    if (keeps && ranks.rank() > 0 && !told.empty()) write_atomically(file, told.substr(1));
  });
}

}  // namespace weft::run
