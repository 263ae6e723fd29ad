#include "weft/tune/training/connection.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/files.h"

namespace weft::tune {

namespace fs = std::filesystem;

namespace {

constexpr double kSignOfLifeSeconds = 1;
constexpr size_t kHead = 9;                                          // bytes before a frame's content
constexpr size_t kChunk = 256 * 1024;                                // of files
constexpr size_t kMostOfStranger = 4096, kMostOfFriend = 256 << 20;  // bytes of a frame
constexpr size_t kMostPerPump = 16 << 20;                            // so that others get their turn

// Kinds of frames.
constexpr char kMessage = 'm', kLife = 'l', kFolderBegin = 'b', kFileBegin = 'f', kContent = 'c', kLink = 's',
               kFolderEnd = 'e';

std::string frame_of(char kind, std::string_view content) {
  std::string frame(1, kind);
  for (int shift = 0; shift < 64; shift += 8) frame += static_cast<char>(uint64_t{content.size()} >> shift);
  return frame.append(content);
}

uint64_t length_of(const std::string& input, size_t at) {
  uint64_t length = 0;
  for (int byte = 7; byte >= 0; --byte)
    length = length << 8 | static_cast<uint8_t>(input[at + 1 + static_cast<size_t>(byte)]);
  return length;
}

std::string json_text(const Message& json) { return json.dump(-1, ' ', false, Message::error_handler_t::replace); }

}  // namespace

Connection::Connection(Socket socket, double silence_seconds)
    : socket_(std::move(socket)), silence_seconds_(silence_seconds) {
  const int yes = 1;
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

Connection::~Connection() {
  if (file_ >= 0) close(file_);
  if (received_file_ >= 0) close(received_file_);
}

void Connection::lose(const std::string& why) {
  if (why_.empty()) why_ = why;
  queue_.clear();
  output_.clear();
  written_ = 0;
  if (file_ >= 0) close(std::exchange(file_, -1));
}

void Connection::send(const Message& json) {
  if (!is_lost()) queue_.push_back({frame_of(kMessage, json_text(json)), {}, {}});
}

void Connection::send_folder(const fs::path& folder) try {
  if (is_lost()) return;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  queue_.push_back({frame_of(kFolderBegin, ""), {}, {}});
  for (const fs::path& path : paths) {
    const std::string name = fs::relative(path.parent_path(), folder) / path.filename();
    if (fs::is_symlink(path))
      queue_.push_back({frame_of(kLink, json_text({{"name", name}, {"to", fs::read_symlink(path).string()}})), {}, {}});
    else if (fs::is_regular_file(path))
      queue_.push_back({"", path, name});
  }
  queue_.push_back({frame_of(kFolderEnd, ""), {}, {}});
} catch (const fs::filesystem_error& error) {
  fail(ErrorKind::io, "cannot read '{}': {}", folder.string(), error.code().message());
}

void Connection::begin_file(const Piece& piece) {
  file_ = open(piece.file.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (file_ < 0 || fstat(file_, &status) != 0)
    return lose(fmt::format("cannot read '{}': {}", piece.file.string(), std::strerror(errno)));
  file_path_ = piece.file.string();
  file_left_ = static_cast<uint64_t>(status.st_size);
  output_ += frame_of(kFileBegin, json_text({{"name", piece.name}, {"bytes", file_left_}}));
}

void Connection::fill_output() {
  while (output_.size() - written_ < kChunk && !is_lost()) {
    if (file_ >= 0) {
      if (file_left_ == 0) {
        close(std::exchange(file_, -1));
        continue;
      }
      std::string bytes(std::min<uint64_t>(kChunk, file_left_), '\0');
      const ssize_t count = read(file_, bytes.data(), bytes.size());
      if (count <= 0) return lose(fmt::format("cannot read all of '{}'", file_path_));
      bytes.resize(static_cast<size_t>(count));
      file_left_ -= bytes.size();
      output_ += frame_of(kContent, bytes);
    } else if (!queue_.empty()) {
      const Piece piece = std::move(queue_.front());
      queue_.pop_front();
      if (piece.file.empty())
        output_ += piece.frame;
      else
        begin_file(piece);
    } else {
      return;
    }
  }
}

void Connection::write_some(double now) {
  size_t moved = 0;
  while (!is_lost() && moved < kMostPerPump) {
    fill_output();
    if (output_.empty() || is_lost()) return;
    const ssize_t count = ::send(socket_.get(), output_.data() + written_, output_.size() - written_, MSG_NOSIGNAL);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (count < 0) return lose(std::strerror(errno));
    written_ += static_cast<size_t>(count);
    moved += static_cast<size_t>(count);
    spoke_ = now;
    if (written_ == output_.size()) {
      output_.clear();
      written_ = 0;
    }
  }
}

void Connection::read_some(double now) {
  std::string bytes(kChunk, '\0');
  for (size_t moved = 0; !is_lost() && moved < kMostPerPump;) {
    const ssize_t count = recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (count < 0) return lose(std::strerror(errno));
    if (count == 0) return lose("it has closed the connection");
    moved += static_cast<size_t>(count);
    heard_ = now;
    input_.append(bytes.data(), static_cast<size_t>(count));
    take_frames();
  }
}

void Connection::pump(double now) {
  if (is_lost()) return;
  if (heard_ < 0) heard_ = spoke_ = now;
  if (is_sent() && now - spoke_ >= kSignOfLifeSeconds) queue_.push_back({frame_of(kLife, ""), {}, {}});
  write_some(now);
  read_some(now);
  if (may_be_silent_) heard_ = now;
  if (now - heard_ > silence_seconds_) lose(fmt::format("it has been silent for {:.3g} s", silence_seconds_));
}

std::optional<Message> Connection::next() {
  if (messages_.empty()) return std::nullopt;
  Message first = std::move(messages_.front());
  messages_.pop_front();
  return first;
}

void Connection::take_frames() {
  size_t at = 0;
  while (!is_lost() && input_.size() - at >= kHead) {
    const uint64_t length = length_of(input_, at);
    if (length > (is_trusted_ ? kMostOfFriend : kMostOfStranger)) return lose("it does not speak as weft does");
    if (input_.size() - at - kHead < length) break;
    try {
      take(input_[at], std::string_view(input_).substr(at + kHead, length));
    } catch (const Message::exception&) {
      lose("it does not speak as weft does");
    } catch (const std::exception& error) {  // of files here
      lose(error.what());
    }
    at += kHead + length;
  }
  input_.erase(0, at);
}

void Connection::take(char kind, std::string_view content) {
  if (kind == kLife) return;
  if (kind == kMessage) {
    Message json = Message::parse(content);
    json.at("type").get<std::string>();
    if (json["type"] == "folder") return lose("it does not speak as weft does");
    messages_.push_back(std::move(json));
    return;
  }
  take_folder_frame(kind, content);
}

void Connection::take_folder_frame(char kind, std::string_view content) {
  if (kind == kFolderBegin) {
    if (awaited_.empty()) return lose("it has sent files that nobody asked for");
    folder_ = std::exchange(awaited_, {});
    fs::remove_all(folder_);
    make_directories(folder_);
    return;
  }
  const bool is_in_file = received_file_ >= 0;
  if (folder_.empty() || (kind == kContent) != is_in_file) return lose("it does not speak as weft does");
  if (kind == kFileBegin) {
    begin_received_file(Message::parse(content));
  } else if (kind == kContent) {
    take_chunk(content);
  } else if (kind == kLink) {
    const Message head = Message::parse(content);
    const std::string to = head.at("to").get<std::string>();
    if (to.empty() || to.front() == '.' || to.find('/') != to.npos)
      return lose("it has sent a link that leads out of its folder");
    const fs::path place = place_of(head.at("name").get<std::string>());
    make_directories(place.parent_path());
    fs::create_symlink(to, place);
  } else if (kind == kFolderEnd) {
    sync_directory(folder_);
    folder_.clear();
    messages_.push_back({{"type", "folder"}});
  } else {
    lose("it does not speak as weft does");
  }
}

fs::path Connection::place_of(const std::string& name) const {
  const fs::path path(name);
  const bool leads_out = path.empty() || path.is_absolute() ||
                         std::any_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
  if (leads_out) fail(ErrorKind::data, "it has sent a name that leads out of its folder");
  return folder_ / path;
}

void Connection::begin_received_file(const Message& head) {
  const fs::path place = place_of(head.at("name").get<std::string>());
  received_left_ = head.at("bytes").get<uint64_t>();
  make_directories(place.parent_path());
  received_file_ = open(place.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (received_file_ < 0) fail(ErrorKind::io, "cannot write '{}': {}", place.string(), std::strerror(errno));
  if (received_left_ == 0) end_received_file();
}

void Connection::take_chunk(std::string_view content) {
  if (content.size() > received_left_) return lose("it does not speak as weft does");
  received_left_ -= content.size();
  while (!content.empty()) {
    const ssize_t count = write(received_file_, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(ErrorKind::io, "cannot write into '{}': {}", folder_.string(), std::strerror(errno));
    content.remove_prefix(static_cast<size_t>(count));
  }
  if (received_left_ == 0) end_received_file();
}

void Connection::end_received_file() {
  const int code = fsync(received_file_) == 0 ? 0 : errno;
  close(std::exchange(received_file_, -1));
  if (code != 0) fail(ErrorKind::io, "cannot write into '{}': {}", folder_.string(), std::strerror(code));
}

}  // namespace weft::tune
