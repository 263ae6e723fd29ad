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

inline constexpr double kBusySeconds = 30;  // that one waits for another process to let go of a file

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
/// Error(io) where the file cannot be opened, is locked for too long, or the disk is full; Error(data) where it is no
/// database or is damaged. Where another process keeps it locked for some seconds, the user is told.
class Database {
 public:
  enum class Mode {
    open,
    create,
    read  // and nothing else, where neither the file nor its folder can be written, too
  };
  /// `if_unreadable`: what to say of a file that is no database or is damaged.
  Database(const std::filesystem::path& path, Mode mode, double busy_seconds = kBusySeconds,
           std::string if_unreadable =
               "is damaged; put a copy of it back, or begin another study: the runs beside it are whole");
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
  /// Of SQLite, while the file is locked: 0 where it is to give up. `tries` since the wait began.
  static int wait_for_lock(void* database, int tries);
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  std::filesystem::path path_;
  const double busy_seconds_;
  const std::string if_unreadable_;
  double waits_since_ = 0;  // for a lock
  bool has_said_so_ = false;
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
