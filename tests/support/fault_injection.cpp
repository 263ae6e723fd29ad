// Preloaded before a program (LD_PRELOAD): counts its changes to files below a directory, and at a chosen one lets the
// machine lose power or the disk refuse. WEFT_FAULT_BELOW names the directory, WEFT_FAULT says what happens:
//   count:FILE    nothing; FILE holds the number of changes when the program ends
//   power:N       at change N the process is killed; of a write half the bytes arrive; what was never synced is lost
//   refuse:E:N    from change N on, all that would take space fails with errno E (EROFS: all changes), a first write
//                 after half of its bytes
// Changes are: opening for writing, write, fsync, rename, exchange, mkdir, unlink, rmdir, symlink, ftruncate, and, of
// the file of what a step keeps outside memory, posix_fallocate, pwrite and pread. What it does not act out: renames
// and new names that are lost because their directory was not synced.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace {

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

std::string absolute(const char* path) {
  if (path[0] == '/') return path;
  char here[4096];
  return getcwd(here, sizeof here) == nullptr ? path : std::string(here) + "/" + path;
}

std::string path_of(int descriptor) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t length = readlink(link.c_str(), path, sizeof path);
  return length < 0 ? "" : std::string(path, static_cast<size_t>(length));
}

enum class Mode { none, count, power, refuse };

class Faults {
 public:
  Faults() {
    const char* below = getenv("WEFT_FAULT_BELOW");
    const char* what = getenv("WEFT_FAULT");
    if (below == nullptr || what == nullptr) return;
    below_ = below;
    const std::string text = what;
    if (text.starts_with("count:")) {
      mode_ = Mode::count;
      file_ = text.substr(6);
    } else if (sscanf(what, "power:%ld", &at_) == 1) {
      mode_ = Mode::power;
    } else if (sscanf(what, "refuse:%d:%ld", &errno_, &at_) == 2) {
      mode_ = Mode::refuse;
    }
  }
  ~Faults() {
    if (mode_ != Mode::count) return;
    if (FILE* file = fopen(file_.c_str(), "w")) {
      fprintf(file, "%ld\n", changes_);
      fclose(file);
    }
  }

  /// The errno with which a change of this path is refused; 0 where it goes on.
  int change(const std::string& path, bool takes_space) {
    const std::lock_guard lock(mutex_);
    if (!is_below(path)) return 0;
    ++changes_;
    if (mode_ == Mode::power && changes_ == at_) lose_power();
    return mode_ == Mode::refuse && changes_ >= at_ && (takes_space || errno_ == EROFS) ? errno_ : 0;
  }

  /// `real` writes so many of the bytes.
  template <typename Write>
  ssize_t write(int descriptor, size_t bytes, Write&& real) {
    const std::string path = path_of(descriptor);
    const std::lock_guard lock(mutex_);
    if (!is_below(path)) return real(bytes);
    ++changes_;
    const bool now = changes_ == at_ && mode_ != Mode::count;
    if (mode_ == Mode::refuse && changes_ >= at_ && !(now && bytes > 1)) {
      errno = errno_;
      return -1;
    }
    // What is there before the first write has been on the disk for long.
    struct stat status {};
    if (!synced_.contains(path) && fstat(descriptor, &status) == 0) synced_[path] = status.st_size;
    const ssize_t put = real(now ? bytes / 2 : bytes);
    if (now && mode_ == Mode::power) lose_power();
    return put;
  }

  void synced(const std::string& path) {
    const std::lock_guard lock(mutex_);
    synced_.erase(path);
  }
  void renamed(const std::string& from, const std::string& to) { moved({{from, to}}); }
  void exchanged(const std::string& a, const std::string& b) { moved({{a, b}, {b, a}}); }

 private:
  /// What stood at or below each key stands at its value now.
  void moved(const std::map<std::string, std::string>& moves) {
    const std::lock_guard lock(mutex_);
    std::map<std::string, int64_t> now;
    for (const auto& [name, synced] : synced_) {
      std::string place = name;
      for (const auto& [from, to] : moves)
        if (name == from || name.starts_with(from + "/")) place = to + name.substr(from.size());
      now[place] = synced;
    }
    synced_ = std::move(now);
  }

  bool is_below(const std::string& path) const { return mode_ != Mode::none && path.starts_with(below_); }
  [[noreturn]] void lose_power() {
    for (const auto& [path, bytes] : synced_)
      if (truncate(path.c_str(), bytes) != 0) continue;  // removed since
    kill(getpid(), SIGKILL);
    for (;;) pause();
  }

  Mode mode_ = Mode::none;
  std::string below_, file_;
  long at_ = 0, changes_ = 0;
  int errno_ = 0;
  std::mutex mutex_;
  std::map<std::string, int64_t> synced_;  // of each file with bytes that were never synced: how many were
};

Faults& faults() {
  static Faults all;
  return all;
}

/// -1 with errno set where the change is refused, 0 where it goes on.
int refuse(const std::string& path, bool takes_space = true) {
  const int code = faults().change(path, takes_space);
  if (code == 0) return 0;
  errno = code;
  return -1;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  if ((flags & O_ACCMODE) != O_RDONLY && refuse(absolute(path)) != 0) return -1;
  return next<int(const char*, int, ...)>("open")(path, flags, mode);
}

ssize_t write(int descriptor, const void* data, size_t bytes) {
  const auto real = next<ssize_t(int, const void*, size_t)>("write");
  return faults().write(descriptor, bytes, [&](size_t count) { return real(descriptor, data, count); });
}

ssize_t pwrite(int descriptor, const void* data, size_t bytes, off_t offset) {
  const auto real = next<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  return faults().write(descriptor, bytes, [&](size_t count) { return real(descriptor, data, count, offset); });
}

ssize_t pread(int descriptor, void* data, size_t bytes, off_t offset) {
  if (refuse(path_of(descriptor)) != 0) return -1;
  return next<ssize_t(int, void*, size_t, off_t)>("pread")(descriptor, data, bytes, offset);
}

int posix_fallocate(int descriptor, off_t offset, off_t bytes) {
  if (refuse(path_of(descriptor)) != 0) return errno;
  return next<int(int, off_t, off_t)>("posix_fallocate")(descriptor, offset, bytes);
}

int fsync(int descriptor) {
  const std::string path = path_of(descriptor);
  if (refuse(path) != 0) return -1;
  const int result = next<int(int)>("fsync")(descriptor);
  if (result == 0) faults().synced(path);
  return result;
}

int rename(const char* from, const char* to) noexcept {
  if (refuse(absolute(to), false) != 0) return -1;
  const int result = next<int(const char*, const char*)>("rename")(from, to);
  if (result == 0) faults().renamed(absolute(from), absolute(to));
  return result;
}

int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) noexcept {
  if (refuse(absolute(to), false) != 0) return -1;
  const int result = next<int(int, const char*, int, const char*, unsigned)>("renameat2")(from_directory, from,
                                                                                          to_directory, to, flags);
  if (result == 0 && (flags & RENAME_EXCHANGE) != 0) faults().exchanged(absolute(from), absolute(to));
  if (result == 0 && (flags & RENAME_EXCHANGE) == 0) faults().renamed(absolute(from), absolute(to));
  return result;
}

int mkdir(const char* path, mode_t mode) noexcept {
  return refuse(absolute(path)) != 0 ? -1 : next<int(const char*, mode_t)>("mkdir")(path, mode);
}

int symlink(const char* target, const char* path) noexcept {
  return refuse(absolute(path)) != 0 ? -1 : next<int(const char*, const char*)>("symlink")(target, path);
}

int unlink(const char* path) noexcept {
  return refuse(absolute(path), false) != 0 ? -1 : next<int(const char*)>("unlink")(path);
}

int remove(const char* path) noexcept {
  return refuse(absolute(path), false) != 0 ? -1 : next<int(const char*)>("remove")(path);
}

int unlinkat(int directory, const char* path, int flags) noexcept {
  const std::string whole = path[0] == '/' || directory == AT_FDCWD ? absolute(path) : path_of(directory) + "/" + path;
  return refuse(whole, false) != 0 ? -1 : next<int(int, const char*, int)>("unlinkat")(directory, path, flags);
}

int ftruncate(int descriptor, off_t length) noexcept {
  return refuse(path_of(descriptor), false) != 0 ? -1 : next<int(int, off_t)>("ftruncate")(descriptor, length);
}

}  // extern "C"
