#include "weft/run/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/graph/constant_text.h"
#include "weft/program/cost_profile.h"
#include "weft/spec/recipe.h"

namespace weft::run {

namespace fs = std::filesystem;

namespace {
/// All that is written by AtomicFile.
constexpr std::string_view kWrittenFiles[] = {
    "spec.toml",         "data.json",       "plan.json",    "graph.weft",           "cluster.toml",
    "cost_profile.toml", "metrics.jsonl",   "summary.json", "initial_weights.json", "damaged_samples.txt",
    "model.onnx",        "prediction.json", "policy.json"};

/// What to say of a path that is no run directory: the newest of those below it, if it holds some.
std::string runs_below(const fs::path& path) {
  std::error_code code;
  fs::path newest;
  fs::file_time_type newest_time;
  for (fs::directory_iterator entry(path, code), end; !code && entry != end; entry.increment(code)) {
    std::error_code missing;
    const fs::file_time_type time = fs::last_write_time(entry->path() / "spec.toml", missing);
    if (missing || (!newest.empty() && time <= newest_time)) continue;
    newest = entry->path();
    newest_time = time;
  }
  if (newest.empty()) return "`weft train` makes one";
  return fmt::format("the newest one in it is '{}'", newest.string());
}
}  // namespace

void RunDirectory::require_free(const fs::path& path) {
  std::error_code code;
  if (path.empty() || !fs::exists(path, code)) return;
  if (!fs::is_directory(path, code))
    fail(ErrorKind::usage, "'{}' is a file; choose another --run directory", path.string());
  // A start that was cut off may have left the temporary name of its first file. Others' files are none of ours.
  const auto stays = [](const fs::directory_entry& entry) { return !is_temporary(entry.path(), kWrittenFiles); };
  if (std::none_of(fs::directory_iterator(path, code), fs::directory_iterator(), stays)) return;
  if (fs::exists(path / "spec.toml", code))
    fail(ErrorKind::usage, "'{}' holds a run already; go on with it by --resume {}, or choose another --run directory",
         path.string(), quoted_for_shell(path.string()));
  fail(ErrorKind::usage, "'{}' is not empty; choose another --run directory", path.string());
}

RunDirectory RunDirectory::create(const fs::path& path, const std::string& model, const std::string& data) {
  if (!path.empty()) {
    require_free(path);
    std::error_code code;
    const bool made = !fs::exists(path, code);
    make_directories(path);
    return {path, made};
  }
  make_directories("runs");
  for (int number = 1;; ++number) {
    const fs::path candidate = fs::path("runs") / fmt::format("{}-{}-{}", model, data, number);
    std::error_code code;
    if (fs::create_directory(candidate, code)) return {candidate, true};  // false: it is there, take the next
    if (code && code != std::errc::file_exists)
      fail(ErrorKind::io, "cannot create directory '{}': {}; choose another one with --run", candidate.string(),
           code.message());
  }
}

int RunDirectory::ranks() const {
  std::error_code code;
  if (!fs::exists(plan(), code)) return 1;
  const nlohmann::json planned = nlohmann::json::parse(read_text(plan()), nullptr, /*allow_exceptions=*/false);
  return planned.is_object() ? planned.value(kRanksKey, 1) : 1;
}

RunDirectory RunDirectory::open(const fs::path& path) {
  std::error_code code;
  if (!fs::exists(path, code)) fail(ErrorKind::usage, "there is no run directory '{}'; check the path", path.string());
  if (!fs::exists(path / "spec.toml", code))
    fail(ErrorKind::usage, "'{}' is no run directory: it has no spec.toml; {}", path.string(), runs_below(path));
  return {path, false};
}

spec::RunSpec RunDirectory::read_spec(const Entries& entries) const {
  spec::RunSpec run_spec;
  spec::apply_recipe_file(run_spec, spec(), entries);
  // The run's own copy, wherever the directory lies now.
  std::error_code code;
  if (const auto file = run_spec.model.options.find(kModelFileOption);
      file != run_spec.model.options.end() && fs::exists(model_file(), code))
    file->second = fs::absolute(model_file()).lexically_normal().string();
  spec::resolve(run_spec, entries);
  return run_spec;
}

std::string RunDirectory::chosen_cost_profile(const spec::RunSpec& run_spec) const {
  std::error_code code;
  if (fs::exists(cost_profile(), code)) {
    program::read_kept_profile(cost_profile().string());
    return cost_profile().string();
  }
  if (run_spec.cost_profile != program::kDefaultProfile && fs::exists(plan(), code))
    fail(ErrorKind::data, "'{}' is gone, by which this run was planned; put it back, or start a new run",
         cost_profile().string());
  return run_spec.cost_profile;
}

spec::DataDescription RunDirectory::read_data() const {
  return spec::parse_data_description(read_text(data()), data().string());
}

std::shared_ptr<void> RunDirectory::lock() const { return lock_at(path_); }

std::vector<fs::path> RunDirectory::files() const {
  std::vector<fs::path> found;
  std::error_code code;
  for (const std::string_view name : kWrittenFiles)
    if (fs::exists(path_ / name, code)) found.push_back(path_ / name);
  for (const fs::path& file : {changes(), constants_path(graph())})
    if (fs::exists(file, code)) found.push_back(file);
  for (const auto& entry : fs::directory_iterator(tensorboard(), code))
    if (entry.is_regular_file(code)) found.push_back(entry.path());
  return found;
}

std::shared_ptr<void> RunDirectory::lock_at(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail(ErrorKind::io, "cannot open '{}'; check its permissions", path.string());
  std::shared_ptr<void> held(nullptr, [descriptor](void*) { close(descriptor); });
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0)
    fail(ErrorKind::usage, "another weft trains in '{}'; wait for it, or choose another --run directory",
         path.string());
  return held;
}

void RunDirectory::remove_temporaries() const { weft::remove_temporaries(path_, kWrittenFiles); }

void RunDirectory::remove() const {
  std::error_code ignored;
  for (const fs::path& file : {spec(), data(), metrics(), plan(), cluster(), cost_profile(), graph(),
                               constants_path(graph()), model_file(), initial_weights(), prediction()})
    fs::remove(file, ignored);
  fs::remove_all(tensorboard(), ignored);
  if (made_) fs::remove(path_, ignored);  // only where it is empty
}

}  // namespace weft::run
