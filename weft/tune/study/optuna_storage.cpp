#include "weft/tune/study/optuna_storage.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "weft/base/error.h"

namespace weft::tune {

namespace fs = std::filesystem;

using State = StudyTrial::State;

namespace {

constexpr int64_t kSchema = 12;
constexpr const char* kOptuna = "5.0.0";       // whose tables these are
constexpr const char* kRevision = "v3.2.0.a";  // of its migrations

constexpr const char* kOptunaTables = R"(
CREATE TABLE IF NOT EXISTS studies (study_id INTEGER NOT NULL, study_name VARCHAR(512) NOT NULL,
  PRIMARY KEY (study_id));
CREATE UNIQUE INDEX IF NOT EXISTS ix_studies_study_name ON studies (study_name);
CREATE TABLE IF NOT EXISTS version_info (version_info_id INTEGER NOT NULL, schema_version INTEGER,
  library_version VARCHAR(256), PRIMARY KEY (version_info_id), CHECK (version_info_id = 1));
CREATE TABLE IF NOT EXISTS study_directions (study_direction_id INTEGER NOT NULL, direction VARCHAR(8) NOT NULL,
  study_id INTEGER NOT NULL, objective INTEGER NOT NULL, PRIMARY KEY (study_direction_id),
  UNIQUE (study_id, objective), FOREIGN KEY (study_id) REFERENCES studies (study_id));
CREATE TABLE IF NOT EXISTS study_user_attributes (study_user_attribute_id INTEGER NOT NULL, study_id INTEGER,
  "key" VARCHAR(512), value_json TEXT, PRIMARY KEY (study_user_attribute_id), UNIQUE (study_id, "key"),
  FOREIGN KEY (study_id) REFERENCES studies (study_id));
CREATE TABLE IF NOT EXISTS study_system_attributes (study_system_attribute_id INTEGER NOT NULL, study_id INTEGER,
  "key" VARCHAR(512), value_json TEXT, PRIMARY KEY (study_system_attribute_id), UNIQUE (study_id, "key"),
  FOREIGN KEY (study_id) REFERENCES studies (study_id));
CREATE TABLE IF NOT EXISTS trials (trial_id INTEGER NOT NULL, number INTEGER, study_id INTEGER,
  state VARCHAR(8) NOT NULL, datetime_start DATETIME, datetime_complete DATETIME, PRIMARY KEY (trial_id),
  FOREIGN KEY (study_id) REFERENCES studies (study_id));
CREATE INDEX IF NOT EXISTS ix_trials_study_id ON trials (study_id);
CREATE TABLE IF NOT EXISTS trial_user_attributes (trial_user_attribute_id INTEGER NOT NULL, trial_id INTEGER,
  "key" VARCHAR(512), value_json TEXT, PRIMARY KEY (trial_user_attribute_id), UNIQUE (trial_id, "key"),
  FOREIGN KEY (trial_id) REFERENCES trials (trial_id));
CREATE TABLE IF NOT EXISTS trial_system_attributes (trial_system_attribute_id INTEGER NOT NULL, trial_id INTEGER,
  "key" VARCHAR(512), value_json TEXT, PRIMARY KEY (trial_system_attribute_id), UNIQUE (trial_id, "key"),
  FOREIGN KEY (trial_id) REFERENCES trials (trial_id));
CREATE TABLE IF NOT EXISTS trial_params (param_id INTEGER NOT NULL, trial_id INTEGER, param_name VARCHAR(512),
  param_value FLOAT, distribution_json TEXT, PRIMARY KEY (param_id), UNIQUE (trial_id, param_name),
  FOREIGN KEY (trial_id) REFERENCES trials (trial_id));
CREATE TABLE IF NOT EXISTS trial_values (trial_value_id INTEGER NOT NULL, trial_id INTEGER NOT NULL,
  objective INTEGER NOT NULL, value FLOAT, value_type VARCHAR(7) NOT NULL, PRIMARY KEY (trial_value_id),
  UNIQUE (trial_id, objective), FOREIGN KEY (trial_id) REFERENCES trials (trial_id));
CREATE TABLE IF NOT EXISTS trial_intermediate_values (trial_intermediate_value_id INTEGER NOT NULL,
  trial_id INTEGER NOT NULL, step INTEGER NOT NULL, intermediate_value FLOAT,
  intermediate_value_type VARCHAR(7) NOT NULL, PRIMARY KEY (trial_intermediate_value_id), UNIQUE (trial_id, step),
  FOREIGN KEY (trial_id) REFERENCES trials (trial_id));
CREATE TABLE IF NOT EXISTS trial_heartbeats (trial_heartbeat_id INTEGER NOT NULL, trial_id INTEGER NOT NULL,
  heartbeat DATETIME NOT NULL, PRIMARY KEY (trial_heartbeat_id), UNIQUE (trial_id),
  FOREIGN KEY (trial_id) REFERENCES trials (trial_id));
CREATE TABLE IF NOT EXISTS alembic_version (version_num VARCHAR(32) NOT NULL,
  CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num));
)";

/// Optuna's local time with microseconds.
constexpr const char* kNow = "strftime('%Y-%m-%d %H:%M:%f000', 'now', 'localtime')";

const char* optuna_state(State state) {
  switch (state) {
    case State::finished:
      return "COMPLETE";
    case State::stopped:
      return "PRUNED";
    case State::failed:
    case State::refused:
      return "FAIL";
    default:
      return "RUNNING";  // it may go on
  }
}

/// As Optuna stores the value, and the range that it comes from: choices by their index.
struct Param {
  double value = 0;
  std::string distribution;
};

/// A choice that Optuna knows: a list of numbers becomes its text.
nlohmann::ordered_json json_of_choice(const KeyValue& choice) {
  return std::visit(
      [&](const auto& value) -> nlohmann::ordered_json {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::vector<double>>)
          return shown(choice);
        else
          return value;
      },
      choice);
}

Param param_of(const Dimension& dimension, const KeyValue& value) {
  nlohmann::ordered_json attributes;
  Param param;
  const char* name = "FloatDistribution";
  if (dimension.kind == Dimension::Kind::choice) {
    name = "CategoricalDistribution";
    auto choices = nlohmann::ordered_json::array();
    for (size_t at = 0; at < dimension.choices.size(); ++at) {
      choices.push_back(json_of_choice(dimension.choices[at]));
      if (dimension.choices[at] == value) param.value = static_cast<double>(at);
    }
    attributes = {{"choices", choices}};
  } else if (dimension.kind == Dimension::Kind::integer) {
    name = "IntDistribution";
    const auto low = static_cast<int64_t>(dimension.low), high = static_cast<int64_t>(dimension.high);
    attributes = {{"log", dimension.log},
                  {"step", dimension.step},
                  {"low", low},
                  {"high", low + (high - low) / dimension.step * dimension.step}};
    param.value = static_cast<double>(std::get<int64_t>(value));
  } else {
    attributes = {{"step", nullptr}, {"low", dimension.low}, {"high", dimension.high}, {"log", dimension.log}};
    param.value = std::get<double>(value);
  }
  param.distribution = nlohmann::ordered_json{{"name", name}, {"attributes", attributes}}.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return param;
}

const char* type_of(double value) {
  return std::isfinite(value) ? "FINITE" : std::isnan(value) ? "NAN" : value > 0 ? "INF_POS" : "INF_NEG";
}

}  // namespace

fs::path storage_file(const std::string& text) {
  constexpr std::string_view kSqlite = "sqlite:///";
  if (text.starts_with(kSqlite)) return text.substr(kSqlite.size());
  if (text.find("://") != text.npos)
    fail(ErrorKind::usage, "--storage {}: weft writes SQLite files; give sqlite:///FILE, or the file", text);
  return text;
}

OptunaStorage::OptunaStorage(const fs::path& file, const Study& study)
    : settings_(study.settings()),
      database_(
          std::make_unique<Database>(file, Database::Mode::create, kBusySeconds,
                                     "is no SQLite database, or a damaged one; name another file for --storage")) {
  Transaction transaction(*database_);
  database_->execute(kOptunaTables);
  Statement version = database_->prepare("SELECT schema_version, library_version FROM version_info");
  if (!version.step()) {
    database_->prepare("INSERT INTO version_info VALUES (1, ?, ?)").bind(kSchema).bind(std::string(kOptuna)).run();
    database_->prepare("INSERT INTO alembic_version VALUES (?)").bind(std::string(kRevision)).run();
  } else if (version.integer(0) != kSchema) {
    fail(ErrorKind::usage,
         "'{}' has the tables of Optuna {} (schema {}), and weft writes those of {} (schema {}); name another file, or "
         "bring this one up to date by `optuna storage upgrade --storage sqlite:///{}`",
         file.string(), version.text(1), version.integer(0), kOptuna, kSchema, file.string());
  }
  const fs::path folder = fs::absolute(study.folder()).lexically_normal();
  add_study((folder.has_filename() ? folder : folder.parent_path()).filename().string(), folder.string());
  transaction.commit();
}

void OptunaStorage::add_study(const std::string& name, const std::string& folder) {
  constexpr const char* kFind = "SELECT study_id FROM studies WHERE study_name = ?";
  Statement found = database_->prepare(kFind);
  const std::string own = nlohmann::json(folder).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (found.bind(name).step()) {
    study_ = found.integer(0);
    Statement kept = database_->prepare(
        "SELECT value_json FROM study_user_attributes WHERE study_id = ? AND \"key\" = 'weft_study'");
    if (!kept.bind(study_).step() || kept.text(0) != own)
      fail(ErrorKind::usage, "'{}' holds a study '{}' already, and it is not that of '{}'; name another file",
           database_->path().string(), name, folder);
    return;
  }
  database_->prepare("INSERT INTO studies (study_name) VALUES (?)").bind(name).run();
  Statement made = database_->prepare(kFind);
  check(made.bind(name).step(), "the study that was just added");
  study_ = made.integer(0);
  auto names = nlohmann::json::array();
  for (size_t index = 0; index < settings_.objectives.size(); ++index) {
    const Objective& objective = settings_.objectives[index];
    names.push_back(objective.name);
    database_->prepare("INSERT INTO study_directions (direction, study_id, objective) VALUES (?, ?, ?)")
        .bind(std::string(objective.higher_is_better ? "MAXIMIZE" : "MINIMIZE"))
        .bind(study_)
        .bind(static_cast<int64_t>(index))
        .run();
  }
  database_->prepare("INSERT INTO study_system_attributes (study_id, \"key\", value_json) VALUES (?, ?, ?)")
      .bind(study_)
      .bind(std::string("study:metric_names"))
      .bind(names.dump())
      .run();
  database_->prepare("INSERT INTO study_user_attributes (study_id, \"key\", value_json) VALUES (?, 'weft_study', ?)")
      .bind(study_)
      .bind(own)
      .run();
}

int64_t OptunaStorage::count() {
  Statement counted = database_->prepare("SELECT COUNT(*) FROM trials WHERE study_id = ?");
  counted.bind(study_).step();
  return counted.integer(0);
}

/// Of the trial, in the state that it has; made where it is new.
int64_t OptunaStorage::row_of(const StudyTrial& trial) {
  constexpr const char* kFind = "SELECT trial_id FROM trials WHERE study_id = ? AND number = ?";
  Statement found = database_->prepare(kFind);
  if (!found.bind(study_).bind(trial.number).step()) {
    const std::string sql =
        fmt::format("INSERT INTO trials (number, study_id, state, datetime_start) VALUES (?, ?, 'RUNNING', {})", kNow);
    database_->prepare(sql.c_str()).bind(trial.number).bind(study_).run();
  }
  Statement row = database_->prepare(kFind);
  check(row.bind(study_).bind(trial.number).step(), "the trial that was just added");
  const std::string state = optuna_state(trial.state);
  // A trial that ends keeps the time at which it first did.
  const std::string sql =
      fmt::format("UPDATE trials SET state = ?, datetime_complete = {} WHERE trial_id = ?",
                  state == "RUNNING" ? "NULL" : fmt::format("COALESCE(datetime_complete, {})", kNow));
  database_->prepare(sql.c_str()).bind(state).bind(row.integer(0)).run();
  return row.integer(0);
}

void OptunaStorage::write(const StudyTrial& trial) {
  Transaction transaction(*database_, Outlives::process);  // each start of a tuner writes all trials again
  const int64_t row = row_of(trial);
  for (const Dimension& dimension : settings_.space.dimensions()) {
    if (!has_value(trial.values, dimension.name)) continue;
    const Param param = param_of(dimension, value_of(trial.values, dimension.name));
    database_
        ->prepare(
            "INSERT OR REPLACE INTO trial_params (trial_id, param_name, param_value, distribution_json)"
            " VALUES (?, ?, ?, ?)")
        .bind(row)
        .bind(dimension.name)
        .bind(param.value)
        .bind(param.distribution)
        .run();
  }
  write_values(row, trial);
  write_attributes(row, trial);
  transaction.commit();
}

void OptunaStorage::write_values(int64_t row, const StudyTrial& trial) {
  // Optuna keeps no infinity as a number: its type says it.
  const auto bind_number = [](Statement& statement, double value) {
    statement.bind(std::isfinite(value) ? value : 0.0).bind(std::string(type_of(value))).run();
  };
  database_->prepare("DELETE FROM trial_values WHERE trial_id = ?").bind(row).run();
  const bool has_ended = std::string(optuna_state(trial.state)) != "RUNNING" && trial.state != State::failed;
  for (size_t index = 0; has_ended && index < trial.results.size(); ++index) {
    Statement statement =
        database_->prepare("INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (?, ?, ?, ?)");
    statement.bind(row).bind(static_cast<int64_t>(index));
    bind_number(statement, trial.results[index]);
  }
  database_->prepare("DELETE FROM trial_intermediate_values WHERE trial_id = ?").bind(row).run();
  for (const auto& [epoch, value] : trial.curve) {
    Statement statement = database_->prepare(
        "INSERT OR REPLACE INTO trial_intermediate_values"
        " (trial_id, step, intermediate_value, intermediate_value_type) VALUES (?, ?, ?, ?)");
    statement.bind(row).bind(epoch);
    bind_number(statement, value);
  }
}

void OptunaStorage::write_attributes(int64_t row, const StudyTrial& trial) {
  const auto set = [&](const char* name, const nlohmann::json& value) {
    database_->prepare("INSERT OR REPLACE INTO trial_user_attributes (trial_id, \"key\", value_json) VALUES (?, ?, ?)")
        .bind(row)
        .bind(std::string(name))
        .bind(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
        .run();
  };
  set("weft_state", name_of(trial.state));
  if (trial.plan.parameters > 0) set("parameters", trial.plan.parameters);
  if (trial.plan.memory > 0) set("planned_bytes", trial.plan.memory);
  if (trial.seconds > 0) set("train_seconds", trial.seconds);
  if (!trial.reason.empty()) set("reason", trial.reason);
  if (trial.parent) set("copy_of", *trial.parent);
}

}  // namespace weft::tune
