#include "weft/run/run_directory.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/json_numbers.h"
#include "weft/data/dataset/dataset_json.h"
#include "weft/spec/recipe.h"

namespace weft::train {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {
/// All that is written by AtomicFile.
constexpr std::string_view kWrittenFiles[] = {"spec.toml",  "data.json",     "plan.json",
                                              "graph.weft", "metrics.jsonl", "summary.json"};
}  // namespace

std::string print_data_description(const DataDescription& d) {
  json root = data::to_json(d.info);
  root["samples"] = d.samples;
  if (!d.target_checksum.empty()) root["target_checksum"] = d.target_checksum;
  root["mean"] = d.statistics.mean;
  root["deviation"] = d.statistics.deviation;
  return root.dump(2) + "\n";
}

DataDescription parse_data_description(std::string_view text, const std::string& name) {
  try {
    const json root = json::parse(text);
    DataDescription d;
    d.info = data::info_from_json(root, name);
    d.samples = whole_number(root.value("samples", json(0)));
    d.target_checksum = root.value("target_checksum", "");
    d.statistics.mean = root.at("mean").get<std::vector<float>>();
    d.statistics.deviation = root.at("deviation").get<std::vector<float>>();
    return d;
  } catch (const json::exception&) {
    fail(ErrorKind::data, "'{}' is damaged: it does not describe the data; train in a new run directory", name);
  }
}

std::string difference_of(const DataDescription& then, const DataDescription& now) {
  const data::DatasetInfo &a = then.info, &b = now.info;
  if (a.sample_shape != b.sample_shape)
    return fmt::format("{} were {}, now {}", a.item(), to_string(a.sample_shape), to_string(b.sample_shape));
  if (then.samples != 0 && then.samples != now.samples)
    return fmt::format("there were {} samples, now {}", then.samples, now.samples);
  if (a.classes != b.classes) return fmt::format("there were {} classes, now {}", a.classes, b.classes);
  const bool checked = !then.target_checksum.empty() && !now.target_checksum.empty();
  if (checked && then.target_checksum != now.target_checksum)
    return a.task == data::Task::regression ? "samples have other values to predict" : "samples have other labels";
  const auto& [mean_then, deviation_then] = then.statistics;
  const auto& [mean_now, deviation_now] = now.statistics;
  if (mean_then != mean_now)
    return fmt::format("the mean was [{}], now [{}]", fmt::join(mean_then, ", "), fmt::join(mean_now, ", "));
  if (deviation_then != deviation_now)
    return fmt::format("the deviation was [{}], now [{}]", fmt::join(deviation_then, ", "),
                       fmt::join(deviation_now, ", "));
  const auto parsed = [](const std::string& encoding) { return encoding.empty() ? json() : json::parse(encoding); };
  if (parsed(a.encoding) != parsed(b.encoding)) return "what the files hold is encoded otherwise";
  return "";
}

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
         path.string(), path.string());
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

RunDirectory RunDirectory::open(const fs::path& path) {
  std::error_code code;
  if (!fs::exists(path, code)) fail(ErrorKind::usage, "there is no run directory '{}'; check the path", path.string());
  if (!fs::exists(path / "spec.toml", code))
    fail(ErrorKind::usage, "'{}' is no run directory: it has no spec.toml; `weft train` makes one", path.string());
  return {path, false};
}

RunSpec RunDirectory::read_spec() const {
  RunSpec run_spec;
  apply_recipe_file(run_spec, spec());
  resolve(run_spec);
  return run_spec;
}

DataDescription RunDirectory::read_data() const { return parse_data_description(read_text(data()), data().string()); }

std::shared_ptr<void> RunDirectory::lock() const {
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail(ErrorKind::io, "cannot open '{}'; check its permissions", path_.string());
  std::shared_ptr<void> held(nullptr, [descriptor](void*) { close(descriptor); });
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0)
    fail(ErrorKind::usage, "another weft trains in '{}'; wait for it, or choose another --run directory",
         path_.string());
  return held;
}

void RunDirectory::remove_temporaries() const { weft::remove_temporaries(path_, kWrittenFiles); }

void RunDirectory::remove() const {
  std::error_code ignored;
  for (const fs::path& file : {spec(), data(), metrics(), plan(), cluster(), graph()}) fs::remove(file, ignored);
  fs::remove_all(tensorboard(), ignored);
  if (made_) fs::remove(path_, ignored);  // only where it is empty
}

}  // namespace weft::train
