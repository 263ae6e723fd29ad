// SQLite behind a few calls, with errors that say what is wrong with the file and what to do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace weft::tune {

class Database;

/// A statement with its values. Values are numbered from 1 as they stand in the text, columns from 0.
class Statement {
 public:
  Statement& bind(int64_t value);
  Statement& bind(double value);
  Statement& bind(const std::string& value);
  /// The next row; false behind the last one.
  bool step();
  /// For a statement that gives no rows.
  void run() { step(); }
  int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;

 private:
  friend class Database;
  Statement(Database& database, const char* sql);
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int next_ = 1;
};

/// What a commit outlives.
enum class Outlives {
  process,  // the process that made it: a power cut may undo the last commits
  power_cut
};

/// One connection, for one thread, with a write-ahead log. A change outside of a Transaction outlives a power cut.
/// Error(io) where the file cannot be opened,
/// is locked for too long, or the disk is full; Error(data) where it is no database or is damaged.
class Database {
 public:
  enum class Mode { open, create };
  Database(const std::filesystem::path& path, Mode mode, double busy_seconds = 30);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void execute(const char* sql);
  Statement prepare(const char* sql) { return {*this, sql}; }
  /// Another number each time that another connection has changed the file.
  int64_t version();
  /// Of the commits that follow; not within a transaction. What a later one waits for on the disk is all before it.
  void set_outlives(Outlives wanted);
  const std::filesystem::path& path() const { return path_; }

 private:
  friend class Statement;
  void require(int code);
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  std::filesystem::path path_;
  double busy_seconds_;
  std::unique_ptr<sqlite3, Close> connection_;
  Outlives outlives_ = Outlives::power_cut;
};

/// A transaction that no other writer interrupts. What was not committed when it dies is undone.
class Transaction {
 public:
  explicit Transaction(Database& database, Outlives outlives = Outlives::power_cut);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& database_;
  bool is_open_ = true;
};

}  // namespace weft::tune
