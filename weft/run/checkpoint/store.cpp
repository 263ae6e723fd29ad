#include "weft/run/checkpoint/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/run/checkpoint/reader.h"
#include "weft/run/checkpoint/tensor_files.h"

namespace weft::run {

namespace fs = std::filesystem;

namespace {

constexpr const char* kStepPrefix = "step-";
constexpr const char* kUnfinishedPrefix = ".unfinished-";
constexpr const char* kReplacedPrefix = ".replaced-";
constexpr const char* kDamagedPrefix = "damaged-";

/// True where the two have changed places, false where the file system cannot do that.
bool exchange(const fs::path& a, const fs::path& b) {
  return renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

/// Where the checkpoint of this name waits while another takes its place without exchange().
fs::path replaced_path(const fs::path& target) {
  return target.parent_path() / (kReplacedPrefix + target.filename().string());
}

/// -1 where the name is not that of a checkpoint.
int64_t step_of(const fs::path& directory) {
  const std::string name = directory.filename().string();
  if (!name.starts_with(kStepPrefix)) return -1;
  const std::string digits = name.substr(std::strlen(kStepPrefix));
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos) return -1;
  return std::stoll(digits);
}

void point_link(const fs::path& link, const fs::path& target) {
  const fs::path temporary = link.string() + ".tmp-" + std::to_string(getpid());
  std::error_code code;
  fs::remove(temporary, code);
  fs::create_directory_symlink(target, temporary, code);
  if (!code) fs::rename(temporary, link, code);
  if (code) fail(ErrorKind::io, "cannot link '{}': {}", link.string(), code.message());
}

}  // namespace

UnfinishedDirectory::UnfinishedDirectory(fs::path path) : path_(std::move(path)) { make_directories(path_); }

UnfinishedDirectory::~UnfinishedDirectory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

void UnfinishedDirectory::rename_to(const fs::path& target) {
  sync_directory(path_);
  std::error_code code, ignored;
  if (fs::exists(target, ignored) && exchange(path_, target)) {
    sync_directory(target.parent_path());
    return;  // path_ is the older one now, which the destructor removes
  }
  const fs::path replaced = replaced_path(target);
  if (fs::exists(target, ignored)) {
    fs::remove_all(replaced, ignored);
    fs::rename(target, replaced, code);
  }
  if (!code) {
    fs::rename(path_, target, code);
    if (code) fs::rename(replaced, target, ignored);
  }
  if (code) fail(ErrorKind::io, "cannot rename to '{}': {}", target.string(), code.message());
  path_.clear();
  sync_directory(target.parent_path());
  fs::remove_all(replaced, ignored);
}

Checkpoint read_checkpoint(const fs::path& directory, bool with_optimizer) {
  CheckpointReader reader(directory, with_optimizer);
  Checkpoint checkpoint{.path = directory, .manifest = reader.manifest(), .state = {}};
  for (const std::string& name : reader.names()) checkpoint.state.set(name, reader.read(name));
  return checkpoint;
}

fs::path CheckpointStore::write(const State& state, Manifest manifest) {
  manifest.files.clear();
  manifest.parts = {};
  UnfinishedDirectory unfinished = begin(manifest.position.step);
  write_whole(unfinished.path(), state, manifest);
  return finish(std::move(unfinished), manifest);
}

UnfinishedDirectory CheckpointStore::begin(int64_t step) const {
  return UnfinishedDirectory(directory_ / unfinished_name(directory_name(step)));
}

void CheckpointStore::write_whole(const fs::path& unfinished, const State& state, Manifest& manifest) {
  for (const TensorFile file : {TensorFile::model, TensorFile::optimizer})
    manifest.files[name_of(file)] =
        write_tensors(unfinished / name_of(file), state, file, manifest.position.step, manifest.parts.shardings);
}

fs::path CheckpointStore::finish(UnfinishedDirectory unfinished, const Manifest& manifest) {
  const int64_t step = manifest.position.step;
  const std::string name = directory_name(step);
  write_atomically(unfinished.path() / kManifestFile, print_manifest(manifest));
  unfinished.rename_to(directory_ / name);
  if (manifest.best && manifest.best->step == step) point_link(directory_ / "best", name);
  remove_old(step);
  return directory_ / name;
}

Manifest check_checkpoint(const fs::path& directory) { return checked_manifest(directory, /*with_optimizer=*/true); }

std::string CheckpointStore::directory_name(int64_t step) { return fmt::format("{}{:08}", kStepPrefix, step); }

void CheckpointStore::make_whole(const fs::path& unfinished, const fs::path& checkpoint) {
  UnfinishedDirectory(unfinished).rename_to(checkpoint);
}

std::string CheckpointStore::unfinished_name(const std::string& name) {
  return fmt::format("{}{}-{}", kUnfinishedPrefix, name, getpid());
}

std::vector<fs::path> CheckpointStore::list() const {
  std::vector<fs::path> found;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(directory_, code))
    if (step_of(entry.path()) >= 0) found.push_back(entry.path());
  std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) { return step_of(a) > step_of(b); });
  return found;
}

std::optional<Checkpoint> CheckpointStore::read_newest(const std::function<void(const std::string&)>& warn,
                                                       bool with_optimizer) const {
  return newest(warn, [&](const fs::path& path) { return read_checkpoint(path, with_optimizer); });
}

std::optional<Checkpoint> CheckpointStore::check_newest(const std::function<void(const std::string&)>& warn) const {
  return newest(warn, [](const fs::path& path) {
    return Checkpoint{.path = path, .manifest = CheckpointReader(path).manifest(), .state = {}};
  });
}

std::optional<Checkpoint> CheckpointStore::newest(const std::function<void(const std::string&)>& warn,
                                                  const std::function<Checkpoint(const fs::path&)>& read_one) const {
  const std::vector<fs::path> found = list();
  std::string newest_problem;
  for (const fs::path& path : found) {
    try {
      Checkpoint read = read_one(path);
      if (!read.manifest.has_checksum)
        warn(fmt::format("checkpoint '{}' is of an older weft: its manifest has no checksum", path.string()));
      return read;
    } catch (const Error& error) {
      if (newest_problem.empty()) newest_problem = error.what();
      warn(fmt::format("checkpoint '{}' is left out: {}", path.string(), error.what()));
    }
  }
  if (found.empty()) return std::nullopt;
  fail(ErrorKind::data, "no checkpoint in '{}' is whole ({}); start again in a new run directory", directory_.string(),
       newest_problem);
}

Checkpoint CheckpointStore::read_best(bool with_optimizer) const {
  std::error_code code;
  if (!fs::exists(directory_ / "best", code))
    fail(ErrorKind::usage, "'{}' has no best checkpoint: no epoch has been evaluated yet; use the last one",
         directory_.string());
  return read_checkpoint(directory_ / "best", with_optimizer);
}

void CheckpointStore::put_back() const {
  std::error_code code;
  std::vector<fs::path> replaced;
  for (const auto& entry : fs::directory_iterator(directory_, code))
    if (entry.path().filename().string().starts_with(kReplacedPrefix)) replaced.push_back(entry.path());
  for (const fs::path& path : replaced) {
    const fs::path target = directory_ / path.filename().string().substr(std::strlen(kReplacedPrefix));
    if (fs::exists(target, code))
      fs::remove_all(path, code);
    else
      fs::rename(path, target, code);
  }
}

void CheckpointStore::remove_old(int64_t written) const {
  std::error_code code;
  const std::string best = fs::read_symlink(directory_ / "best", code).filename().string();
  int64_t kept = 1;  // the one just written, whatever else is there
  for (const fs::path& path : list()) {
    if (step_of(path) == written || kept++ < keep_ || path.filename().string() == best) continue;
    // Out of sight first: a removal that is cut short must not look like a damaged checkpoint.
    const fs::path hidden = directory_ / (kUnfinishedPrefix + path.filename().string());
    fs::rename(path, hidden, code);
    if (!code) fs::remove_all(hidden, code);
  }
}

void CheckpointStore::set_damaged_aside(int64_t step) const {
  for (const fs::path& path : list()) {
    if (step_of(path) <= step) continue;
    const fs::path aside = directory_ / (kDamagedPrefix + path.filename().string());
    std::error_code code;
    fs::remove_all(aside, code);
    fs::rename(path, aside, code);
    if (code) fail(ErrorKind::io, "cannot rename the damaged '{}': {}", path.string(), code.message());
  }
}

void CheckpointStore::tidy(const std::optional<BestCheckpoint>& best) const {
  std::error_code code;
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(directory_, code)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kUnfinishedPrefix) || name.starts_with("best.tmp-")) leftovers.push_back(entry.path());
  }
  for (const fs::path& path : leftovers) fs::remove_all(path, code);
  if (best && fs::exists(directory_ / directory_name(best->step), code))
    point_link(directory_ / "best", directory_name(best->step));
}

}  // namespace weft::run
