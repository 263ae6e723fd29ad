#include "weft/tune/study/database.h"

#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "weft/base/clock.h"
#include "weft/base/error.h"
#include "weft/base/say.h"

namespace weft::tune {

void Database::Close::operator()(sqlite3* connection) const { sqlite3_close(connection); }
void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

namespace {

constexpr double kQuietSeconds = 2;  // of a wait for a lock

/// Of a file that nobody writes any more: SQLite then wants no files beside it, in a folder that cannot be written.
std::string immutable(const std::filesystem::path& path) {
  std::string uri = "file:";
  for (const char byte : path.string())
    if (byte == '%' || byte == '?' || byte == '#')
      uri += fmt::format("%{:02x}", static_cast<unsigned char>(byte));
    else
      uri += byte;
  return uri + "?immutable=1";
}

/// What it takes to open the file: how SQLite is to name it, and its flags.
std::pair<std::string, int> way_to_open(const std::filesystem::path& path, Database::Mode mode) {
  if (mode == Database::Mode::create) return {path.string(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE};
  if (mode == Database::Mode::open) return {path.string(), SQLITE_OPEN_READWRITE};
  std::error_code code;
  const bool is_written = std::filesystem::file_size(path.string() + "-wal", code) > 0 && !code;
  if (is_written) return {path.string(), SQLITE_OPEN_READONLY};
  return {immutable(path), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI};
}

}  // namespace

Database::Database(const std::filesystem::path& path, Mode mode, double busy_seconds, std::string if_unreadable)
    : path_(path), busy_seconds_(busy_seconds), if_unreadable_(std::move(if_unreadable)) {
  sqlite3* opened = nullptr;
  const auto [name, flags] = way_to_open(path, mode);
  const int code = sqlite3_open_v2(name.c_str(), &opened, flags, nullptr);
  connection_.reset(opened);
  if (opened == nullptr) fail(ErrorKind::io, "cannot open '{}': out of memory", path.string());
  sqlite3_extended_result_codes(opened, 1);
  require(code);
  sqlite3_busy_handler(opened, wait_for_lock, this);
  if (mode == Mode::read) return;
  execute("PRAGMA journal_mode = WAL");
  execute("PRAGMA synchronous = FULL");
}

int Database::wait_for_lock(void* database, int tries) {
  auto& self = *static_cast<Database*>(database);
  const double now = steady_seconds();
  if (tries == 0) {
    self.waits_since_ = now;
    self.has_said_so_ = false;
  }
  const double waited = now - self.waits_since_;
  if (waited >= self.busy_seconds_) return 0;
  if (waited >= kQuietSeconds && !std::exchange(self.has_said_so_, true))
    say(fmt::format("another process holds a lock on '{}'; waiting for it, for {:g} s at most", self.path_.string(),
                    self.busy_seconds_));
  std::this_thread::sleep_for(std::chrono::milliseconds(1 << std::min(tries, 5)));
  return 1;
}

void Database::require(int code) {
  if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return;
  const std::string file = path_.string(), reason = sqlite3_errmsg(connection_.get());
  if (code == SQLITE_IOERR_WRITE || code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_SHMSIZE)
    fail(ErrorKind::io,
         "cannot write '{}' ({}): its disk is full, or a limit of the size of files is reached; make room, then go on "
         "with "
         "--resume: all finished trials are there",
         file, reason);
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      fail(ErrorKind::io,
           "another process has kept '{}' locked for {:g} s; wait for it, or end it, then go on with --resume", file,
           busy_seconds_);
    case SQLITE_FULL:
      fail(ErrorKind::io,
           "cannot write '{}': no space left on its disk; make room, then go on with --resume: all "
           "finished trials are there",
           file);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      fail(ErrorKind::data, "'{}' {} ({})", file, if_unreadable_, reason);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR: {
      const int number = sqlite3_system_errno(connection_.get());
      fail(ErrorKind::io,
           "cannot use '{}': {}; check the path, the disk and its permissions, or copy its folder to one of your own",
           file, number != 0 ? std::generic_category().message(number) : reason);
    }
    case SQLITE_ERROR:  // such as a table that is not there
      fail(ErrorKind::data, "'{}' is damaged: {}; put a copy of it back", file, reason);
    default:
      fail(ErrorKind::internal, "internal error: '{}': {}; please report this with the command you ran", file, reason);
  }
}

void Database::execute(const char* sql) { require(sqlite3_exec(connection_.get(), sql, nullptr, nullptr, nullptr)); }

int64_t Database::version() {
  Statement statement = prepare("PRAGMA data_version");
  statement.step();
  return statement.integer(0);
}

void Database::set_outlives(Outlives wanted) {
  if (wanted == outlives_) return;
  execute(wanted == Outlives::power_cut ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
  outlives_ = wanted;
}

Statement::Statement(Database& database, const char* sql) : database_(database) {
  sqlite3_stmt* prepared = nullptr;
  const int code = sqlite3_prepare_v2(database.connection_.get(), sql, -1, &prepared, nullptr);
  statement_.reset(prepared);
  database.require(code);
}

Statement& Statement::bind(int64_t value) {
  database_.require(sqlite3_bind_int64(statement_.get(), next_++, value));
  return *this;
}

Statement& Statement::bind(double value) {
  database_.require(sqlite3_bind_double(statement_.get(), next_++, value));
  return *this;
}

Statement& Statement::bind(const std::string& value) {
  database_.require(
      sqlite3_bind_text(statement_.get(), next_++, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  database_.require(code);
  return code == SQLITE_ROW;
}

int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }

std::string Statement::text(int column) const {
  const unsigned char* bytes = sqlite3_column_text(statement_.get(), column);
  const int count = sqlite3_column_bytes(statement_.get(), column);
  return bytes == nullptr ? "" : std::string(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
}

Transaction::Transaction(Database& database, Outlives outlives) : database_(database) {
  database_.set_outlives(outlives);
  database_.execute("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (!is_open_) return;
  try {
    database_.execute("ROLLBACK");
    database_.set_outlives(Outlives::power_cut);
  } catch (const Error&) {  // it has been undone already
  }
}

void Transaction::commit() {
  database_.execute("COMMIT");
  is_open_ = false;
  database_.set_outlives(Outlives::power_cut);
}

}  // namespace weft::tune
