#include "weft/run/run_changes.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "weft/base/append.h"
#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/run/checkpoint/manifest.h"
#include "weft/spec/recipe_keys.h"

namespace weft::run {

namespace fs = std::filesystem;

namespace {

std::string key_of(const std::string& assignment) {
  const std::string key = assignment.substr(0, assignment.find('='));
  return key.substr(0, key.find_last_not_of(' ') + 1);
}

class OpenFile {
 public:
  explicit OpenFile(const fs::path& path)
      : descriptor_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) fail(ErrorKind::io, "cannot write '{}': {}", path.string(), std::strerror(errno));
  }
  ~OpenFile() { close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace

const std::vector<std::string>& changeable_keys() {
  static const std::vector<std::string> keys = {"epochs",
                                                "max_steps",
                                                "max_time",
                                                "stop.*",
                                                "schedule.*",
                                                "optimizer.learning_rate",
                                                "optimizer.weight_decay",
                                                "optimizer.momentum",
                                                "loss.label_smoothing",
                                                "evaluation.*",
                                                "checkpoint.*",
                                                "loader.*",
                                                "clip.*",
                                                "mesh.*",
                                                "shard.*",
                                                "pipeline.*",
                                                "balance.by_speed"};
  return keys;
}

bool is_changeable(const std::string& key) {
  return std::any_of(changeable_keys().begin(), changeable_keys().end(), [&](const std::string& pattern) {
    return pattern.ends_with(".*") ? key.starts_with(pattern.substr(0, pattern.size() - 1)) : key == pattern;
  });
}

namespace {

/// How to begin with the weights of this run and another recipe. `assignment` may be empty.
std::string new_run_from(const fs::path& run, const std::string& assignment) {
  const fs::path best = run / "checkpoints" / "best";
  const std::string set = assignment.empty() ? "" : fmt::format(" --set '{}'", assignment);
  if (const int64_t ranks = ranks_with_parts(best); ranks > 0)
    return fmt::format(
        "`weft export {0} weights.safetensors`, then on {1} ranks `train {0}/spec.toml{2} --init weights.safetensors`",
        run.string(), ranks, set);
  return fmt::format("`weft train {}/spec.toml{} --init {}/model.safetensors`", run.string(), set, best.string());
}

}  // namespace

bool can_extend(const std::string& key) {
  const auto is_of = [&](const char* prefix) { return key.starts_with(prefix); };
  return !is_of("mesh.") && !is_of("shard.") && !is_of("pipeline.") && !is_of("balance.") && !is_of("loader.") &&
         !is_of("checkpoint.");
}

std::vector<KeyChange> change_spec(spec::RunSpec& spec, const std::vector<std::string>& assignments,
                                   const fs::path& run, const Entries& entries) {
  spec::RunSpec before = spec;
  for (const std::string& assignment : assignments) {
    spec::set_from_text(spec, assignment, entries);  // which names a key that there is not
    if (!is_changeable(key_of(assignment)))
      fail(ErrorKind::usage,
           "'{0}' cannot change in a run that has begun; these can: {1}. For another {0}, start a new run from these "
           "weights: {2}",
           key_of(assignment), fmt::join(changeable_keys(), ", "), new_run_from(run, assignment));
  }
  if (spec.measured.any())
    fail(ErrorKind::usage,
         "'auto' is measured before the first step, which '{}' has done; give a number, or start a new run from these "
         "weights: {}",
         run.string(), new_run_from(run, ""));
  spec::resolve(spec, entries);
  std::vector<KeyChange> changes;
  spec::RunSpec after = spec;
  spec::add_own_keys(before, after, entries);
  spec::add_own_keys(after, before, entries);
  const std::vector<spec::BoundKey> old_keys = spec::bind_keys(before, entries), keys = spec::bind_keys(after, entries);
  for (size_t at = 0; at < keys.size(); ++at) {
    const std::string from = shown(spec::value_at(old_keys[at].place)), to = shown(spec::value_at(keys[at].place));
    if (from != to) changes.push_back({keys[at].name, from, to});
  }
  return changes;
}

void append_changes(const fs::path& file, int64_t step, const std::vector<KeyChange>& changes,
                    const std::string& from_hash, const std::string& to_hash) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const KeyChange& change : changes)
    list.push_back({{"key", change.key}, {"from", change.from}, {"to", change.to}});
  const nlohmann::ordered_json record = {{"step", step}, {"changes", list}, {"from", from_hash}, {"to", to_hash}};
  const OpenFile open_file(file);
  append_whole(open_file.descriptor(),
               record.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n", file);
  sync_appended(open_file.descriptor(), file);
}

bool changes_lead(const fs::path& file, const std::string& from_hash, const std::string& to_hash) {
  std::error_code code;
  if (!fs::exists(file, code)) return false;
  std::vector<std::pair<std::string, std::string>> steps;
  std::istringstream lines(read_text(file));
  for (std::string line; std::getline(lines, line);) {
    const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (record.is_object() && record.contains("from") && record["from"].is_string() && record.contains("to") &&
        record["to"].is_string())
      steps.emplace_back(record["from"].get<std::string>(), record["to"].get<std::string>());
  }
  std::set<std::string> leads = {to_hash};  // recipes from which the changes lead to the present one
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    if (leads.contains(step->second)) leads.insert(step->first);
  return leads.contains(from_hash);
}

}  // namespace weft::run
