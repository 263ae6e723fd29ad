#include "weft/run/checkpoint/send_file.h"

#include <algorithm>
#include <fstream>
#include <span>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/comm/exchange.h"
#include "weft/comm/on_all_ranks.h"

namespace weft::run {

namespace fs = std::filesystem;

namespace {

constexpr size_t kPieceBytes = size_t{4} << 20;  // of a file, in one exchange

/// The file in order; Error(io) where it is shorter or longer than it was said to be.
class Source {
 public:
  Source(const fs::path& path, uint64_t bytes) : path_(path), stream_(path, std::ios::binary) {
    std::error_code code;
    if (!stream_ || fs::file_size(path, code) != bytes || code) complain();
  }
  void read(std::span<uint8_t> piece) {
    if (!stream_.read(reinterpret_cast<char*>(piece.data()), static_cast<std::streamsize>(piece.size()))) complain();
  }

 private:
  [[noreturn]] void complain() const {
    fail(ErrorKind::io,
         "'{}' changes while it is copied, or cannot be read; another process writes there, or the disk "
         "fails",
         path_.string());
  }
  const fs::path path_;
  std::ifstream stream_;
};

}  // namespace

void send_file(comm::Communicator& ranks, int source, const fs::path& from, const FileRecord& record,
               const std::optional<fs::path>& to, std::string_view what) {
  std::vector<uint8_t> content(std::min<uint64_t>(record.bytes, kPieceBytes));
  std::optional<Source> read;
  std::optional<AtomicFile> written;
  comm::on_all_ranks(&ranks, what, [&] {
    if (ranks.rank() == source) read.emplace(from, record.bytes);
    if (!to) return;
    make_directories(to->parent_path());
    written.emplace(*to);
  });
  for (uint64_t at = 0; at < record.bytes; at += kPieceBytes) {
    const std::span<uint8_t> piece(content.data(), std::min<uint64_t>(kPieceBytes, record.bytes - at));
    comm::on_all_ranks(&ranks, what, [&] {
      if (read) read->read(piece);
    });
    comm::broadcast(ranks, source, std::as_writable_bytes(piece), what);
    comm::on_all_ranks(&ranks, what, [&] {
      if (written) written->write(piece.data(), piece.size());
    });
  }
  comm::on_all_ranks(&ranks, what, [&] {
    if (!written) return;
    if (written->checksum() != record.checksum)
      fail(ErrorKind::io, "the copy of '{}' has another checksum than the original; try again", to->string());
    written->commit();
  });
}

}  // namespace weft::run
