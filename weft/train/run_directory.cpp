#include "weft/train/run_directory.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/train/recipe.h"

namespace weft::train {

namespace fs = std::filesystem;
using nlohmann::json;

std::string print_data_description(const DataDescription& d) {
  const json root = {{"name", d.name},
                     {"sample_shape", d.sample_shape.dims()},
                     {"samples", d.samples},
                     {"classes", d.classes},
                     {"class_names", d.class_names},
                     {"mean", d.statistics.mean},
                     {"deviation", d.statistics.deviation}};
  return root.dump(2) + "\n";
}

DataDescription parse_data_description(std::string_view text, const std::string& name) {
  try {
    const json root = json::parse(text);
    DataDescription d;
    d.name = root.at("name");
    d.sample_shape = Shape(root.at("sample_shape").get<std::vector<int64_t>>());
    d.samples = root.value("samples", int64_t{0});
    d.classes = root.at("classes");
    d.class_names = root.at("class_names").get<std::vector<std::string>>();
    d.statistics.mean = root.at("mean").get<std::vector<float>>();
    d.statistics.deviation = root.at("deviation").get<std::vector<float>>();
    return d;
  } catch (const json::exception&) {
    fail(ErrorKind::data, "'{}' is damaged: it does not describe the data; train in a new run directory", name);
  }
}

std::string difference_of(const DataDescription& then, const DataDescription& now) {
  if (then.sample_shape != now.sample_shape)
    return fmt::format("images were {}, now {}", to_string(then.sample_shape), to_string(now.sample_shape));
  if (then.samples != 0 && then.samples != now.samples)
    return fmt::format("there were {} samples, now {}", then.samples, now.samples);
  if (then.classes != now.classes) return fmt::format("there were {} classes, now {}", then.classes, now.classes);
  const auto& [mean_then, deviation_then] = then.statistics;
  const auto& [mean_now, deviation_now] = now.statistics;
  if (mean_then != mean_now)
    return fmt::format("the mean was [{}], now [{}]", fmt::join(mean_then, ", "), fmt::join(mean_now, ", "));
  if (deviation_then != deviation_now)
    return fmt::format("the deviation was [{}], now [{}]", fmt::join(deviation_then, ", "),
                       fmt::join(deviation_now, ", "));
  return "";
}

void RunDirectory::require_free(const fs::path& path) {
  std::error_code code;
  if (path.empty() || !fs::exists(path, code)) return;
  if (!fs::is_directory(path, code))
    fail(ErrorKind::usage, "'{}' is a file; choose another --run directory", path.string());
  if (fs::is_empty(path, code)) return;
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

void RunDirectory::remove() const {
  std::error_code ignored;
  for (const fs::path& file : {spec(), data(), metrics(), plan(), graph()}) fs::remove(file, ignored);
  if (made_) fs::remove(path_, ignored);  // only where it is empty
}

}  // namespace weft::train
