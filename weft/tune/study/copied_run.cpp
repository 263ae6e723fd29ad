#include "weft/tune/study/copied_run.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/run/checkpoint/manifest.h"
#include "weft/run/checkpoint/store.h"

namespace weft::tune {

namespace fs = std::filesystem;

namespace {

void sync_file(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int code = file < 0 ? errno : (fsync(file) == 0 ? 0 : errno);
  if (file >= 0) close(file);
  if (code != 0) throw fs::filesystem_error("sync", path, std::error_code(code, std::generic_category()));
}

/// Links stay links: `best` names its checkpoint.
void copy_synced(const fs::path& from, const fs::path& to) {
  fs::create_directory(to);
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
    const fs::path target = to / entry.path().filename();
    if (entry.is_symlink()) {
      fs::copy_symlink(entry.path(), target);
    } else if (entry.is_directory()) {
      copy_synced(entry.path(), target);
    } else if (entry.is_regular_file()) {
      fs::copy_file(entry.path(), target);
      sync_file(target);
    }
  }
  sync_file(to);
}

void forget_best(const fs::path& checkpoints) {
  for (const fs::path& checkpoint : run::CheckpointStore(checkpoints, 1).list()) {
    const fs::path file = checkpoint / "manifest.json";
    run::Manifest manifest = run::parse_manifest(read_text(file), file.string());
    manifest.best.reset();
    write_atomically(file, run::print_manifest(manifest));
  }
  fs::remove(checkpoints / "best");
  sync_directory(checkpoints);
}

}  // namespace

void copy_run(const fs::path& from, const fs::path& to) {
  const fs::path half = to.string() + ".partial";
  try {
    fs::remove_all(half);
    copy_synced(from, half);
    forget_best(half / "checkpoints");
    fs::remove_all(to);
    fs::rename(half, to);
    sync_directory(to.parent_path());
  } catch (const fs::filesystem_error& error) {
    std::error_code code;
    fs::remove_all(half, code);
    fail(ErrorKind::io, "cannot copy '{}' to '{}': {}; make room there, then go on with the study", from.string(),
         to.string(), error.code().message());
  }
}

}  // namespace weft::tune
