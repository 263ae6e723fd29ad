#include "weft/data/packed/index.h"

#include <algorithm>
#include <cstring>

#include "weft/base/error.h"
#include "weft/data/packed/record.h"

namespace weft::data {

namespace {

constexpr char kMagic[] = {'W', 'I', 'D', 'X', 0, 0, 0, 0};
constexpr size_t kHeaderBytes = 32, kChecksummedHeader = 24, kEntryBytes = 32;

}  // namespace

PackedIndex::PackedIndex(std::span<const uint8_t> bytes, const std::string& file, size_t shards) {
  const auto damaged = [&](const char* what) {
    fail(ErrorKind::data, "[packed] '{}' {}; copy it again, or pack the data again", file, what);
  };
  if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    damaged("is no index of packed records, or a damaged one");
  const uint64_t count = read_u64(bytes.data() + 8), names = read_u64(bytes.data() + 16);
  const uint64_t room = bytes.size() - kHeaderBytes;
  if (count > room / kEntryBytes || names != room - count * kEntryBytes) damaged("is truncated or too long");
  if (read_u64(bytes.data() + kChecksummedHeader) !=
      checksum_of(bytes.first(kChecksummedHeader), bytes.subspan(kHeaderBytes)))
    damaged("is damaged: its checksum differs");
  count_ = count;
  entries_ = bytes.data() + kHeaderBytes;
  names_ = {reinterpret_cast<const char*>(entries_ + count * kEntryBytes), names};
  uint64_t name_begin = 0;
  for (uint64_t at = 0; at < count; ++at) {
    const uint8_t* entry = entries_ + at * kEntryBytes;
    const uint64_t name_end = read_u64(entry + 8);
    if (name_end < name_begin || name_end > names || read_u32(entry + 20) >= shards) damaged("contradicts itself");
    name_begin = name_end;
  }
}

IndexEntry PackedIndex::operator[](int64_t number) const {
  const uint8_t* entry = entries_ + static_cast<uint64_t>(number) * kEntryBytes;
  const uint64_t begin = number == 0 ? 0 : read_u64(entry - kEntryBytes + 8), end = read_u64(entry + 8);
  return {.offset = read_u64(entry),
          .bytes = read_u32(entry + 16),
          .shard = read_u32(entry + 20),
          .label = static_cast<int32_t>(read_u32(entry + 24)),
          .name = names_.substr(begin, end - begin)};
}

void PackedIndexWriter::add(const IndexEntry& entry) {
  names_ += entry.name;
  entries_.resize(entries_.size() + kEntryBytes);
  uint8_t* to = entries_.data() + count_++ * kEntryBytes;
  write_u64(to, entry.offset);
  write_u64(to + 8, names_.size());
  write_u32(to + 16, entry.bytes);
  write_u32(to + 20, entry.shard);
  write_u32(to + 24, static_cast<uint32_t>(entry.label));
}

std::vector<uint8_t> PackedIndexWriter::finish() const {
  std::vector<uint8_t> bytes(kHeaderBytes + entries_.size() + names_.size());
  std::copy(std::begin(kMagic), std::end(kMagic), bytes.begin());
  write_u64(bytes.data() + 8, count_);
  write_u64(bytes.data() + 16, names_.size());
  std::copy(names_.begin(), names_.end(), std::copy(entries_.begin(), entries_.end(), bytes.begin() + kHeaderBytes));
  const std::span<const uint8_t> all(bytes);
  write_u64(bytes.data() + kChecksummedHeader, checksum_of(all.first(kChecksummedHeader), all.subspan(kHeaderBytes)));
  return bytes;
}

}  // namespace weft::data
