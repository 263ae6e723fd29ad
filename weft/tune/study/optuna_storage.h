// A study also in the tables that Optuna's own tools read (RDBStorage of Optuna 5, schema 12), so that
// `optuna-dashboard sqlite:///FILE` and `optuna.load_study` open it. weft itself never reads trials back from there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "weft/tune/study/database.h"
#include "weft/tune/study/study.h"

namespace weft::tune {

/// What --storage names: "FILE" or "sqlite:///FILE". Error(usage) for databases of other kinds.
std::filesystem::path storage_file(const std::string& text);

class OptunaStorage {
 public:
  /// Makes the file, or adds to the one that is there, which may hold other studies. The study has the name of its
  /// folder. Error(usage) where the tables are of another version of Optuna, or a study of that name is not this one,
  /// Error(data) where the file is no database.
  OptunaStorage(const std::filesystem::path& file, const Study& study);

  /// The trial as it is now, new or known. Trials that no worker has any more are COMPLETE, PRUNED where a scheduler
  /// ended them, and FAIL where they failed or a constraint refused them; the others are RUNNING. Error(io).
  void write(const StudyTrial& trial);
  /// How many trials it holds.
  int64_t count();

 private:
  void add_study(const std::string& name, const std::string& folder);
  int64_t row_of(const StudyTrial& trial);
  void write_values(int64_t row, const StudyTrial& trial);
  void write_attributes(int64_t row, const StudyTrial& trial);

  const StudySettings settings_;
  std::unique_ptr<Database> database_;
  int64_t study_ = 0;  // its row
};

}  // namespace weft::tune
