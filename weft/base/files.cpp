#include "weft/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "weft/base/error.h"

namespace weft {

namespace {

constexpr const char* kTemporaryMark = ".tmp-";  // and the number of the process

[[noreturn]] void fail_system(const char* verb, const std::filesystem::path& path) {
  const int code = errno;
  const char* next = code == ENOSPC   ? "; free some space or choose another directory"
                     : code == EACCES ? "; check its permissions"
                     : code == ENOENT ? "; check the path"
                                      : "";
  fail(ErrorKind::io, "cannot {} '{}': {}{}", verb, path.string(), std::strerror(code), next);
}

bool is_gzip(std::span<const uint8_t> bytes) { return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b; }

/// Error(io), after closing it, for what gives bytes without end, or none for ever: devices, and pipes that lie among
/// the files. Pipes that the shell has opened, standard input and `<(command)`, are read. What read() says of a
/// directory is clear enough.
void require_end(int descriptor, const std::filesystem::path& path) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) return;
  const bool is_given =
      path == "/dev/stdin" || path.parent_path() == "/dev/fd" || path.parent_path() == "/proc/self/fd";
  if (is_given && (S_ISFIFO(status.st_mode) || isatty(descriptor) == 1)) {
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);  // read() waits for the other end
    return;
  }
  close(descriptor);
  const char* what = S_ISFIFO(status.st_mode) ? "a pipe" : S_ISSOCK(status.st_mode) ? "a socket" : "a device";
  fail(ErrorKind::io, "cannot read '{}': it is {}; give a file", path.string(), what);
}

template <typename Container>
Container read_all(const std::filesystem::path& path) {
  // A pipe that nobody writes to would keep open() waiting.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) fail_system("open", path);
  require_end(descriptor, path);
  // One byte more than it has, to see its end: space that is not used costs more than reading a small file.
  struct stat status {};
  size_t piece = size_t{1} << 20;
  if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
    piece = static_cast<size_t>(status.st_size) + 1;
  Container content;
  size_t size = 0;
  for (;;) {
    if (size == content.size()) content.resize(size + piece);
    const ssize_t got = read(descriptor, content.data() + size, content.size() - size);
    if (got < 0) {
      const int code = errno;
      if (code == EINTR) continue;
      close(descriptor);
      errno = code;
      fail_system("read", path);
    }
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  close(descriptor);
  content.resize(size);
  content.shrink_to_fit();
  return content;
}

}  // namespace

std::string read_text(const std::filesystem::path& path) { return read_all<std::string>(path); }
std::vector<uint8_t> read_bytes(const std::filesystem::path& path) { return read_all<std::vector<uint8_t>>(path); }

void read_ahead(const std::filesystem::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  posix_fadvise(descriptor, 0, 0, POSIX_FADV_WILLNEED);
  close(descriptor);
}

namespace {

/// Inflates a gzip file: members one after the other, as `cat a.gz b.gz` and bgzip write them, then perhaps zeros.
class GzipReader {
 public:
  GzipReader(const std::filesystem::path& path, std::span<const uint8_t> packed, size_t piece_bytes)
      : path_(path), packed_(packed), piece_bytes_(piece_bytes) {
    // 15 window bits, +16: gzip framing with its checksum.
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) fail(ErrorKind::internal, "zlib could not start");
  }
  ~GzipReader() { inflateEnd(&stream_); }
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  std::vector<uint8_t> read() {
    if (packed_.size() >= kLarge) reserve_all();
    read_members();
    content_.resize(size_);
    if (packed_.size() < kLarge) content_.shrink_to_fit();
    return std::move(content_);
  }

 private:
  static constexpr size_t kLarge = size_t{32} << 20;

  /// Inflates a large file once to know its size: a buffer that grows takes twice the memory.
  void reserve_all() {
    is_counting_ = true;
    content_.resize(size_t{1} << 20);
    read_members();
    const size_t size = size_;
    is_counting_ = false;
    at_ = size_ = 0;
    inflateReset(&stream_);
    std::vector<uint8_t>(size + 1).swap(content_);  // one more: zlib sees the end where it has room
  }

  void read_members() {
    do read_member();
    while (next_member());
  }

  void read_member() {
    int status = Z_OK;
    while (status != Z_STREAM_END) {
      if (!is_counting_ && size_ == content_.size())
        content_.resize(size_ + std::max<size_t>(size_t{1} << 20, size_ / 2));
      const size_t used = is_counting_ ? 0 : size_;
      // zlib counts in 32 bits.
      const size_t input = std::min(packed_.size() - at_, piece_bytes_);
      const size_t room = std::min(content_.size() - used, piece_bytes_);
      stream_.next_in = const_cast<uint8_t*>(packed_.data()) + at_;
      stream_.avail_in = static_cast<uInt>(input);
      stream_.next_out = content_.data() + used;
      stream_.avail_out = static_cast<uInt>(room);
      status = inflate(&stream_, Z_NO_FLUSH);
      at_ += input - stream_.avail_in;
      size_ += room - stream_.avail_out;
      if (status != Z_OK && status != Z_STREAM_END)
        fail(ErrorKind::data, "'{}' is a damaged or truncated gzip file ({} bytes could be read); fetch it again",
             path_.string(), size_);
    }
  }

  /// False at the end of the file, before which there may be zeros.
  bool next_member() {
    const std::span<const uint8_t> rest = packed_.subspan(at_);
    if (std::all_of(rest.begin(), rest.end(), [](uint8_t byte) { return byte == 0; })) return false;
    if (!is_gzip(rest))
      fail(ErrorKind::data, "'{}' holds {} bytes that are no gzip data behind its gzip data; fetch it again",
           path_.string(), rest.size());
    inflateReset(&stream_);
    return true;
  }

  const std::filesystem::path& path_;
  const std::span<const uint8_t> packed_;
  const size_t piece_bytes_;
  z_stream stream_{};
  std::vector<uint8_t> content_;
  bool is_counting_ = false;
  size_t at_ = 0, size_ = 0;  // what has been read of packed_ and written of content_
};

}  // namespace

std::vector<uint8_t> read_maybe_gzip(const std::filesystem::path& path, size_t piece_bytes) {
  std::vector<uint8_t> raw = read_bytes(path);
  if (!is_gzip(raw)) return raw;
  return GzipReader(path, raw, piece_bytes).read();
}

namespace {

/// Where symbolic links lead, whether something is there or not.
std::filesystem::path end_of_links(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // as Linux follows
  std::error_code code;
  for (int links = 0; links < kMostLinks && std::filesystem::is_symlink(path, code); ++links)
    path = path.parent_path() / std::filesystem::read_symlink(path, code);
  return path;
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code code;
  const std::filesystem::file_type type = std::filesystem::status(path_, code).type();
  direct_ = type == std::filesystem::file_type::character || type == std::filesystem::file_type::block ||
            type == std::filesystem::file_type::fifo || type == std::filesystem::file_type::socket;
  if (direct_) {
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    target_ = end_of_links(path_);
    temporary_ = target_;
    temporary_ += kTemporaryMark + std::to_string(getpid());
    descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  }
  if (descriptor_ < 0) fail_system("write", path_);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  if (!direct_) unlink(temporary_.c_str());
}

uint32_t crc32_of(const void* data, size_t bytes, uint32_t previous) {
  return static_cast<uint32_t>(crc32_z(previous, static_cast<const Bytef*>(data), bytes));
}

void AtomicFile::write(const void* data, size_t bytes) {
  checksum_ = crc32_of(data, bytes, checksum_);
  bytes_ += bytes;
  const char* cursor = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t put = ::write(descriptor_, cursor, bytes);
    if (put < 0) {
      if (errno == EINTR) continue;
      fail_system("write", path_);
    }
    cursor += put;
    bytes -= static_cast<size_t>(put);
  }
}

void AtomicFile::commit() { put_in_place(/*waits_for_disk=*/true); }
void AtomicFile::commit_unsynced() { put_in_place(/*waits_for_disk=*/false); }

void AtomicFile::put_in_place(bool waits_for_disk) {
  const bool synced = !waits_for_disk || fsync(descriptor_) == 0 ||
                      (direct_ && (errno == EINVAL || errno == EROFS));  // of pipes there is nothing to sync
  if (!synced) fail_system("sync", path_);
  const auto give_up = [&](const char* verb) {
    const int code = errno;
    if (!direct_) unlink(temporary_.c_str());
    errno = code;
    fail_system(verb, path_);
  };
  const bool closed = close(descriptor_) == 0;
  descriptor_ = -1;
  if (!closed) give_up("close");
  if (direct_) return;
  if (rename(temporary_.c_str(), target_.c_str()) != 0) give_up("rename to");
  if (waits_for_disk) sync_directory(target_.parent_path());
}

bool is_temporary(const std::filesystem::path& path, std::span<const std::string_view> names) {
  const std::string name = path.filename().string();
  const size_t mark = name.rfind(kTemporaryMark);
  if (mark == std::string::npos || std::find(names.begin(), names.end(), name.substr(0, mark)) == names.end())
    return false;
  const std::string number = name.substr(mark + std::strlen(kTemporaryMark));
  return !number.empty() && number.find_first_not_of("0123456789") == std::string::npos;
}

void remove_temporaries(const std::filesystem::path& directory, std::span<const std::string_view> names) {
  std::error_code ignored;
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored))
    if (is_temporary(entry.path(), names)) found.push_back(entry.path());
  for (const std::filesystem::path& path : found) std::filesystem::remove(path, ignored);
}

void write_atomically(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content.data(), content.size());
  file.commit();
}

void replace_file(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content.data(), content.size());
  file.commit_unsynced();
}

void sync_file(const std::filesystem::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail_system("open", path);
  const bool is_synced = fsync(descriptor) == 0;
  const int code = errno;
  close(descriptor);
  errno = code;
  if (!is_synced) fail_system("sync", path);
}

void sync_directory(const std::filesystem::path& directory) {
  const std::filesystem::path target = directory.empty() ? "." : directory;
  const int descriptor = open(target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail_system("open", target);
  fsync(descriptor);  // some file systems refuse this on directories; the rename itself has happened
  close(descriptor);
}

void make_directories(const std::filesystem::path& directory) {
  std::error_code code;
  std::filesystem::create_directories(directory, code);
  if (code) fail(ErrorKind::io, "cannot create directory '{}': {}", directory.string(), code.message());
}

}  // namespace weft
