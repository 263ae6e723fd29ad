#include "weft/data/packed/record.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "weft/base/error.h"

namespace weft::data {

namespace {

constexpr char kRecordMagic[] = {'W', 'R', 'E', 'C'};
constexpr size_t kChecksummedRecordHeader = 24;
constexpr int kLevel = 3;  // zstd's own default

/// Each thread has one of its own: a new one takes longer than a small record.
ZSTD_DCtx* decompressor() {
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  thread_local const std::unique_ptr<ZSTD_DCtx, Free> context(ZSTD_createDCtx());
  if (!context) throw std::bad_alloc();
  return context.get();
}

}  // namespace

uint32_t read_u32(const uint8_t* from) {
  return from[0] | uint32_t{from[1]} << 8 | uint32_t{from[2]} << 16 | uint32_t{from[3]} << 24;
}
uint64_t read_u64(const uint8_t* from) { return read_u32(from) | uint64_t{read_u32(from + 4)} << 32; }
void write_u32(uint8_t* to, uint32_t value) {
  for (int at = 0; at < 4; ++at) to[at] = static_cast<uint8_t>(value >> (8 * at));
}
void write_u64(uint8_t* to, uint64_t value) {
  write_u32(to, static_cast<uint32_t>(value));
  write_u32(to + 4, static_cast<uint32_t>(value >> 32));
}

uint64_t checksum_of(std::span<const uint8_t> first, std::span<const uint8_t> second) {
  const XXH64_hash_t seed = second.empty() ? 0 : XXH3_64bits(second.data(), second.size());
  return XXH3_64bits_withSeed(first.data(), first.size(), seed);
}

StoredPart compress(std::span<const uint8_t> bytes) {
  StoredPart part{Storage::zstd, std::vector<uint8_t>(ZSTD_compressBound(bytes.size()))};
  const size_t size = ZSTD_compress(part.bytes.data(), part.bytes.size(), bytes.data(), bytes.size(), kLevel);
  if (ZSTD_isError(size) || size >= bytes.size()) return {Storage::plain, {bytes.begin(), bytes.end()}};
  part.bytes.resize(size);
  return part;
}

void expand(Storage storage, std::span<const uint8_t> stored, std::span<uint8_t> destination) {
  const size_t wanted = destination.size();
  if (storage == Storage::picture) fail(ErrorKind::data, "it holds the file of a picture, no numbers");
  if (storage == Storage::plain) {
    if (stored.size() != wanted) fail(ErrorKind::data, "it holds {} bytes instead of {}", stored.size(), wanted);
    std::copy(stored.begin(), stored.end(), destination.begin());
    return;
  }
  const size_t size = ZSTD_decompressDCtx(decompressor(), destination.data(), wanted, stored.data(), stored.size());
  if (ZSTD_isError(size)) fail(ErrorKind::data, "its zstd data is damaged ({})", ZSTD_getErrorName(size));
  if (size != wanted) fail(ErrorKind::data, "it holds {} bytes instead of {}", size, wanted);
}

std::vector<uint8_t> write_record(uint64_t number, const StoredPart& target, const StoredPart& sample) {
  if (std::max(target.bytes.size(), sample.bytes.size()) > kMostRecordBytes)
    fail(ErrorKind::data, "it is larger than a record may be ({} bytes)", kMostRecordBytes);
  const size_t size = kRecordHeaderBytes + target.bytes.size() + sample.bytes.size();
  std::vector<uint8_t> record((size + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment);
  uint8_t* header = record.data();
  std::copy(std::begin(kRecordMagic), std::end(kRecordMagic), header);
  header[4] = static_cast<uint8_t>(target.storage);
  header[5] = static_cast<uint8_t>(sample.storage);
  write_u32(header + 8, static_cast<uint32_t>(target.bytes.size()));
  write_u32(header + 12, static_cast<uint32_t>(sample.bytes.size()));
  write_u64(header + 16, number);
  uint8_t* body = header + kRecordHeaderBytes;
  std::copy(sample.bytes.begin(), sample.bytes.end(), std::copy(target.bytes.begin(), target.bytes.end(), body));
  const std::span<const uint8_t> whole(record);
  write_u64(
      header + kChecksummedRecordHeader,
      checksum_of(whole.first(kChecksummedRecordHeader), whole.subspan(kRecordHeaderBytes, size - kRecordHeaderBytes)));
  return record;
}

RecordView read_record(std::span<const uint8_t> bytes, uint64_t number, bool verify) {
  if (bytes.size() < kRecordHeaderBytes) fail(ErrorKind::data, "it is cut off");
  const uint8_t* header = bytes.data();
  if (std::memcmp(header, kRecordMagic, sizeof kRecordMagic) != 0) fail(ErrorKind::data, "its header is damaged");
  const size_t target = read_u32(header + 8), sample = read_u32(header + 12);
  const bool whole = target <= kMostRecordBytes && sample <= kMostRecordBytes &&
                     target + sample <= bytes.size() - kRecordHeaderBytes &&
                     bytes.size() - kRecordHeaderBytes - target - sample < kRecordAlignment;
  const bool known = header[4] <= static_cast<uint8_t>(Storage::zstd) &&
                     header[5] <= static_cast<uint8_t>(Storage::picture) && header[6] == 0 && header[7] == 0;
  if (!whole || !known) fail(ErrorKind::data, "its header is damaged");
  const std::span<const uint8_t> body = bytes.subspan(kRecordHeaderBytes, target + sample);
  if (verify && read_u64(header + kChecksummedRecordHeader) != checksum_of(bytes.first(kChecksummedRecordHeader), body))
    fail(ErrorKind::data, "its checksum differs");
  if (read_u64(header + 16) != number) fail(ErrorKind::data, "record {} stands in its place", read_u64(header + 16));
  return {.target_storage = static_cast<Storage>(header[4]),
          .sample_storage = static_cast<Storage>(header[5]),
          .number = number,
          .target = body.first(target),
          .sample = body.subspan(target)};
}

}  // namespace weft::data
