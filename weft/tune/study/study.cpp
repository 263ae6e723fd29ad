#include "weft/tune/study/study.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/parse_number.h"
#include "weft/tune/study/owner.h"

namespace weft::tune {

namespace fs = std::filesystem;

namespace {

constexpr const char* kStates[] = {"running", "interrupted", "paused", "finished", "stopped", "failed", "refused"};
constexpr const char* kFormat = "4";

constexpr const char* kTables =
    "CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE IF NOT EXISTS trials (number INTEGER PRIMARY KEY, state TEXT NOT NULL, point TEXT NOT NULL,"
    " generation INTEGER NOT NULL, bracket INTEGER NOT NULL, target INTEGER NOT NULL, owner TEXT NOT NULL,"
    " results TEXT NOT NULL, curve TEXT NOT NULL, reason TEXT NOT NULL, parameters INTEGER NOT NULL,"
    " memory INTEGER NOT NULL, epochs INTEGER NOT NULL, seconds REAL NOT NULL, parent INTEGER NOT NULL,"
    " begun INTEGER NOT NULL, cut INTEGER NOT NULL, predicted REAL NOT NULL);";

StudyTrial::State state_of(const std::string& name) {
  const auto found = std::find(std::begin(kStates), std::end(kStates), name);
  if (found == std::end(kStates)) fail(ErrorKind::data, "'{}' is no state of a trial", name);
  return static_cast<StudyTrial::State>(found - std::begin(kStates));
}

/// Name and text of each setting, in the order in which differences are named.
std::vector<std::pair<std::string, std::string>> print_settings(const StudySettings& settings) {
  std::string objectives, constraints, assignments;
  for (const std::string& assignment : settings.set) assignments += assignment + "\n";
  for (const Objective& objective : settings.objectives)
    objectives += fmt::format("{} {}\n", objective.higher_is_better ? "higher" : "lower", objective.name);
  for (const std::string& constraint : settings.constraints) constraints += constraint + "\n";
  const SchedulerOptions& scheduler = settings.scheduler;
  return {
      {"format", kFormat},
      {"space", print_space(settings.space)},
      {"recipe", settings.recipe},
      {"set", assignments},
      {"objective", objectives},
      {"constraints", constraints},
      {"searcher", settings.searcher},
      {"scheduler", fmt::format("{} {} {} {}{}", scheduler.name, scheduler.least, scheduler.most, scheduler.reduction,
                                scheduler.name == "percentile" ? fmt::format(" {}", scheduler.percentile) : "")},
      {"seed", std::to_string(settings.seed)},
      {"threads", std::to_string(settings.threads)},
      {"in_order", std::to_string(settings.in_order)}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

StudySettings parse_settings(const std::function<std::string(const std::string&)>& read) {
  StudySettings settings;
  settings.space = parse_space(read("space"));
  settings.recipe = read("recipe");
  settings.set = lines_of(read("set"));
  for (const std::string& line : lines_of(read("objective")))
    settings.objectives.push_back({line.substr(line.find(' ') + 1), line.starts_with("higher ")});
  if (settings.objectives.empty()) fail(ErrorKind::data, "it has no objective");
  settings.constraints = lines_of(read("constraints"));
  settings.searcher = read("searcher");
  SchedulerOptions& scheduler = settings.scheduler;
  std::istringstream words(read("scheduler"));
  words >> scheduler.name >> scheduler.least >> scheduler.most >> scheduler.reduction;
  if (scheduler.name == "percentile") words >> scheduler.percentile;
  settings.seed = std::stoll(read("seed"));
  settings.threads = std::stoll(read("threads"));
  settings.in_order = std::stoll(read("in_order"));
  if (settings.threads < 1 || settings.in_order < 0)
    fail(ErrorKind::data, "it has {} threads, and in_order {}", settings.threads, settings.in_order);
  return settings;
}

std::string format_of(Database& database) {
  Statement found = database.prepare("SELECT value FROM settings WHERE name = 'format'");
  return found.step() ? found.text(0) : "";
}

void require_format(Database& database) {
  if (const std::string format = format_of(database); format != kFormat)
    fail(ErrorKind::data, "'{}' was written by another weft (format '{}', and this one reads {}); use that weft",
         database.path().string(), format, kFormat);
}

/// Studies of the first format know no copies of trials, those of the second no ends that a scheduler decided and no
/// order in which results count, those of the third no predicted times.
void raise_format(Database& database) {
  const auto format = [&] { return format_of(database); };
  const auto is_old = [&] { return format() == "1" || format() == "2" || format() == "3"; };
  if (!is_old()) return;  // without a lock, which somebody may hold
  Transaction transaction(database);
  if (is_old()) {
    if (format() == "1")
      database.execute(
          "ALTER TABLE trials ADD COLUMN parent INTEGER NOT NULL DEFAULT -1;"
          "ALTER TABLE trials ADD COLUMN begun INTEGER NOT NULL DEFAULT 0;");
    if (format() != "3")
      database.execute(
          "ALTER TABLE trials ADD COLUMN cut INTEGER NOT NULL DEFAULT 0;"
          "INSERT OR IGNORE INTO settings VALUES ('in_order', '0');");
    database.execute("ALTER TABLE trials ADD COLUMN predicted REAL NOT NULL DEFAULT 0;");
    database.prepare("UPDATE settings SET value = ? WHERE name = 'format'").bind(std::string(kFormat)).run();
  }
  transaction.commit();
}

StudySettings read_settings(Database& database, const fs::path& folder) try {
  return parse_settings([&](const std::string& name) {
    Statement statement = database.prepare("SELECT value FROM settings WHERE name = ?");
    if (!statement.bind(name).step()) fail(ErrorKind::data, "it has no '{}'", name);
    return statement.text(0);
  });
} catch (const std::exception& error) {  // of JSON and of std::stoll, too
  const auto* own = dynamic_cast<const Error*>(&error);
  if (own != nullptr && own->kind() == ErrorKind::io) throw;
  fail(ErrorKind::data, "'{}' holds no study that this weft can read: {}", folder.string(), error.what());
}

/// Error(usage) with the first difference.
void require_same(const StudySettings& found, const StudySettings& wanted, const fs::path& folder) {
  const auto a = print_settings(found), b = print_settings(wanted);
  for (size_t index = 0; index < a.size(); ++index) {
    if (a[index].second == b[index].second) continue;
    const std::string& name = a[index].first;
    const bool is_short = name != "space" && name != "recipe";
    const auto shown_of = [](std::string text) {
      while (text.ends_with('\n')) text.pop_back();
      std::replace(text.begin(), text.end(), '\n', ',');
      return text;
    };
    fail(ErrorKind::usage,
         "the study '{}' has another {}{}: its trials cannot be compared with these; go on with it by --resume {}, or "
         "name "
         "another folder",
         folder.string(), name,
         is_short ? fmt::format(", {} in place of {}", shown_of(a[index].second), shown_of(b[index].second)) : "",
         folder.string());
  }
}

/// Error(data) where the database was emptied, and what it knew of lies there still.
void require_no_trials(const fs::path& folder) {
  std::error_code code;
  for (const char* name : {"runs", "trials"})
    if (fs::is_directory(folder / name, code) && !fs::is_empty(folder / name, code))
      fail(ErrorKind::data,
           "'{}' holds no study, and the {} of one lie beside it; put a copy of the file back, or name another folder",
           (folder / "study.db").string(), name);
}

bool holds_nothing(const fs::path& folder) {
  std::error_code code;
  return !fs::exists(folder, code) || fs::is_empty(folder, code);
}

}  // namespace

const char* name_of(StudyTrial::State state) { return kStates[static_cast<size_t>(state)]; }

Study Study::create(const fs::path& folder, const StudySettings& settings) {
  const fs::path file = folder / "study.db";
  std::error_code code;
  if (!fs::exists(file, code) && !holds_nothing(folder))
    fail(ErrorKind::usage, "'{}' holds something, and no study; name another folder", folder.string());
  make_directories(folder);
  auto database = std::make_unique<Database>(file, Database::Mode::create);
  {
    Transaction transaction(*database);
    database->execute(kTables);
    const bool is_new = !database->prepare("SELECT 1 FROM settings").step();
    if (is_new) {
      require_no_trials(folder);
      for (const auto& [name, value] : print_settings(settings))
        database->prepare("INSERT INTO settings VALUES (?, ?)").bind(name).bind(value).run();
    }
    transaction.commit();
  }
  raise_format(*database);
  require_format(*database);
  require_same(read_settings(*database, folder), settings, folder);
  make_directories(folder / "trials");
  make_directories(folder / "runs");
  write_atomically(folder / "recipe.toml", settings.recipe);
  sync_directory(folder);
  return {folder, std::move(database), settings};
}

namespace {

fs::path database_of(const fs::path& folder) {
  fs::path file = folder / "study.db";
  std::error_code code;
  if (!fs::exists(file, code))
    fail(ErrorKind::usage, "'{}' is no study: it has no study.db; `weft tune RECIPE --study {}` begins one",
         folder.string(), folder.string());
  return file;
}

void require_study(Database& database) {
  if (!database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'settings'").step())
    fail(ErrorKind::data, "'{}' holds no study; name another folder", database.path().string());
}

}  // namespace

Study Study::open(const fs::path& folder, double busy_seconds) {
  auto database = std::make_unique<Database>(database_of(folder), Database::Mode::open, busy_seconds);
  require_study(*database);
  raise_format(*database);
  require_format(*database);
  StudySettings settings = read_settings(*database, folder);
  return {folder, std::move(database), std::move(settings)};
}

Study Study::look_at(const fs::path& folder) {
  const fs::path file = database_of(folder);
  if (access(file.c_str(), W_OK) == 0 && access(folder.c_str(), W_OK) == 0) return open(folder);
  auto database = std::make_unique<Database>(file, Database::Mode::read);
  require_study(*database);
  require_format(*database);
  StudySettings settings = read_settings(*database, folder);
  return {folder, std::move(database), std::move(settings)};
}

fs::path Study::recipe_of(int64_t number) const { return folder_ / "trials" / fmt::format("{:04}.toml", number); }
fs::path Study::run_of(int64_t number) const { return folder_ / "runs" / fmt::format("{:04}", number); }
bool Study::has_run(int64_t number) const {
  std::error_code code;
  return fs::exists(run_of(number) / "spec.toml", code);
}

namespace {

std::string print_curve(const std::vector<std::pair<int64_t, double>>& curve) { return nlohmann::json(curve).dump(); }

template <typename Value>
Value parse_list(const std::string& text) {
  return nlohmann::json::parse(text).get<Value>();
}

StudyTrial read_trial(const Statement& row) {
  StudyTrial trial{.number = row.integer(0), .state = state_of(row.text(1)), .values = parse_values(row.text(2))};
  trial.generation = row.integer(3);
  trial.bracket = row.integer(4);
  trial.target = row.integer(5);
  trial.owner = row.text(6);
  trial.results = parse_list<std::vector<double>>(row.text(7));
  trial.curve = parse_list<std::vector<std::pair<int64_t, double>>>(row.text(8));
  trial.reason = row.text(9);
  trial.plan = {.parameters = row.integer(10), .memory = row.integer(11), .epochs = row.integer(12)};
  trial.seconds = row.real(13);
  if (row.integer(14) >= 0) trial.parent = row.integer(14);
  trial.begun = row.integer(15);
  trial.is_cut = row.integer(16) != 0;
  trial.plan.seconds = row.real(17);
  return trial;
}

}  // namespace

/// Those that are known, as long as no other process has written: a study of thousands is not read for each trial.
const std::vector<StudyTrial>& Study::read_trials() {
  const int64_t version = database_->version();
  if (version == known_version_) return known_;
  std::vector<StudyTrial> trials;
  Statement rows = database_->prepare(
      "SELECT number, state, point, generation, bracket, target, owner, results, curve, reason, parameters, memory,"
      " epochs, seconds, parent, begun, cut, predicted FROM trials ORDER BY number");
  while (rows.step()) {
    try {
      trials.push_back(read_trial(rows));
      const size_t results = trials.back().results.size(), objectives = settings_.objectives.size();
      if (results != 0 && results != objectives)
        fail(ErrorKind::data, "it has {} results for {} objectives", results, objectives);
      settings_.space.point(trials.back().values);  // for its error
    } catch (const std::exception& error) {         // of JSON, too
      fail(ErrorKind::data, "'{}' is damaged: trial {} cannot be read: {}; put a copy of it back",
           database_->path().string(), rows.integer(0), error.what());
    }
    if (trials.back().number != static_cast<int64_t>(trials.size()) - 1)
      fail(ErrorKind::data, "'{}' lacks trial {}; put a copy of it back", database_->path().string(),
           trials.size() - 1);
  }
  known_ = std::move(trials);
  known_version_ = version;
  return known_;
}

/// What this process has written and committed: no other connection has changed that.
void Study::remember(const StudyTrial& trial) {
  if (known_version_ < 0) return;
  const auto number = static_cast<size_t>(trial.number);
  if (number == known_.size())
    known_.push_back(trial);
  else if (number < known_.size())
    known_[number] = trial;
  else
    known_version_ = -1;
}

std::string Study::read_setting(const char* name) {
  Statement statement = database_->prepare("SELECT value FROM settings WHERE name = ?");
  return statement.bind(std::string(name)).step() ? statement.text(0) : "";
}

void Study::write_setting(const char* name, const std::string& value) {
  database_->prepare("INSERT OR REPLACE INTO settings VALUES (?, ?)").bind(std::string(name)).bind(value).run();
}

int64_t Study::wanted_trials() { return parse_number<int64_t>(read_setting("trials")).value_or(0); }
void Study::set_wanted_trials(int64_t trials) { write_setting("trials", std::to_string(trials)); }

std::optional<int64_t> Study::workers() { return parse_number<int64_t>(read_setting("workers")); }
void Study::set_workers(int64_t workers) { write_setting("workers", std::to_string(workers)); }

fs::path Study::storage() { return read_setting("storage"); }
void Study::set_storage(const fs::path& file) { write_setting("storage", fs::absolute(file).lexically_normal()); }

std::string Study::data() { return read_setting("data"); }
void Study::set_data(const std::string& description) { write_setting("data", description); }

std::vector<StudyTrial> Study::trials() { return read_trials(); }

void Study::write(const StudyTrial& trial) {
  database_->prepare("INSERT OR REPLACE INTO trials VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .bind(trial.number)
      .bind(std::string(name_of(trial.state)))
      .bind(print_values(trial.values))
      .bind(trial.generation)
      .bind(trial.bracket)
      .bind(trial.target)
      .bind(trial.owner)
      .bind(nlohmann::json(trial.results).dump())
      .bind(print_curve(trial.curve))
      .bind(trial.reason)
      .bind(trial.plan.parameters)
      .bind(trial.plan.memory)
      .bind(trial.plan.epochs)
      .bind(trial.seconds)
      .bind(trial.parent.value_or(-1))
      .bind(trial.begun)
      .bind(int64_t{trial.is_cut})
      .bind(trial.plan.seconds)
      .run();
}

std::optional<StudyTrial> Study::change(
    const std::function<std::optional<StudyTrial>(const std::vector<StudyTrial>&)>& decide) {
  Transaction transaction(*database_, Outlives::process);
  std::vector<StudyTrial> trials = read_trials();
  for (StudyTrial& trial : trials)
    if (trial.state == StudyTrial::State::running && !is_running(trial.owner))
      trial.state = StudyTrial::State::interrupted;
  const std::optional<StudyTrial> changed = decide(trials);
  if (changed) {
    check(changed->number >= 0 && changed->number <= static_cast<int64_t>(trials.size()), "a trial's number");
    write(*changed);
  }
  transaction.commit();
  if (changed) remember(*changed);
  return changed;
}

void Study::update(const StudyTrial& trial) {
  Transaction transaction(*database_, Outlives::process);
  write(trial);
  transaction.commit();
  remember(trial);
  is_synced_ = is_synced_ && trial.state == StudyTrial::State::running;
}

void Study::sync() {
  if (is_synced_) return;
  // The disk is waited for where something changes: all that was committed before is there, too.
  write_setting("synced", std::to_string(parse_number<int64_t>(read_setting("synced")).value_or(0) + 1));
  is_synced_ = true;
}

namespace {

using State = StudyTrial::State;

bool has_failed(const StudyTrial& trial) { return trial.state == State::failed || trial.state == State::refused; }

}  // namespace

History history_of(const StudySettings& settings, const std::vector<StudyTrial>& trials) {
  History history;
  for (const StudyTrial& trial : trials) {
    Trial seen{.point = settings.space.point(trial.values), .generation = trial.generation};
    if (has_failed(trial)) {
      seen.state = Trial::State::failed;
    } else if (trial.has_results()) {  // also where it goes on: it is known how well it did so far
      seen.state = Trial::State::finished;
      for (size_t index = 0; index < trial.results.size(); ++index)
        seen.losses.push_back(settings.objectives[index].loss(trial.results[index]));
      seen.resource = trial.curve.empty() ? 0 : static_cast<double>(trial.curve.back().first);
    }
    history.push_back(std::move(seen));
  }
  return history;
}

std::vector<TrialProgress> progress_of(const StudySettings& settings, const std::vector<StudyTrial>& trials) {
  std::vector<TrialProgress> all;
  for (const StudyTrial& trial : trials) {
    TrialProgress progress{.bracket = trial.bracket,
                           .target = trial.target,
                           .begun = trial.begun,
                           .has_finished = trial.state == State::finished};
    progress.state = trial.state == State::paused ? TrialProgress::State::paused
                     : trial.state == State::running || trial.state == State::interrupted
                         ? TrialProgress::State::running
                         : TrialProgress::State::ended;
    for (const auto& [epochs, value] : trial.curve)
      progress.curve.emplace_back(epochs, settings.objectives.front().loss(value));
    all.push_back(std::move(progress));
  }
  return all;
}

namespace {

std::vector<double> losses_of(const StudySettings& settings, const StudyTrial& trial) {
  std::vector<double> losses;
  for (size_t index = 0; index < trial.results.size(); ++index)
    losses.push_back(settings.objectives[index].loss(trial.results[index]));
  return losses;
}

/// What is compared: trials that trained equally long, where there are any.
std::vector<StudyTrial> candidates_of(const std::vector<StudyTrial>& trials) {
  std::vector<StudyTrial> all, finished;
  for (const StudyTrial& trial : trials) {
    if (!trial.has_results() || has_failed(trial)) continue;
    all.push_back(trial);
    if (trial.state == State::finished) finished.push_back(trial);
  }
  return finished.empty() ? all : finished;
}

}  // namespace

std::vector<StudyTrial> best_trials(const StudySettings& settings, const std::vector<StudyTrial>& trials) {
  const std::vector<StudyTrial> candidates = candidates_of(trials);
  std::vector<StudyTrial> front;
  for (const StudyTrial& trial : candidates) {
    const std::vector<double> own = losses_of(settings, trial);
    const bool is_beaten = std::any_of(candidates.begin(), candidates.end(), [&](const StudyTrial& other) {
      return dominates(losses_of(settings, other), own);
    });
    if (!is_beaten) front.push_back(trial);
  }
  return front;
}

std::optional<StudyTrial> best_trial(const StudySettings& settings, const std::vector<StudyTrial>& trials) {
  const std::vector<StudyTrial> candidates = candidates_of(trials);
  // By the first objective; where that is equal by the next one: the least in this order is beaten by no other.
  const auto best = std::min_element(
      candidates.begin(), candidates.end(),
      [&](const StudyTrial& a, const StudyTrial& b) { return losses_of(settings, a) < losses_of(settings, b); });
  return best != candidates.end() ? std::optional(*best) : std::nullopt;
}

}  // namespace weft::tune
