// Where the records of one split lie: the file SPLIT.index. All numbers are little-endian.
//   header   "WIDX", 4 zero bytes, number of records (8), bytes of names (8), XXH3 of those 24 bytes and of the rest
//   (8) entries  32 bytes each: offset in the shard (8), where its name ends among the names (8), bytes (4), shard (4),
//            class (4), 0 (4)
//   names    of the pictures, one after the other
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::data {

struct IndexEntry {
  uint64_t offset = 0;
  uint32_t bytes = 0, shard = 0;
  int32_t label = 0;      // of classes; else 0
  std::string_view name;  // of the picture; or empty
};

/// A view of an index; the bytes must outlive it.
class PackedIndex {
 public:
  PackedIndex() = default;
  /// Error(data), naming the file, for what is no whole index of records in `shards` shards.
  PackedIndex(std::span<const uint8_t> bytes, const std::string& file, size_t shards);
  int64_t size() const { return static_cast<int64_t>(count_); }
  IndexEntry operator[](int64_t number) const;

 private:
  const uint8_t* entries_ = nullptr;
  std::string_view names_;
  uint64_t count_ = 0;
};

/// Grows an index, record by record.
class PackedIndexWriter {
 public:
  void add(const IndexEntry& entry);
  std::vector<uint8_t> finish() const;

 private:
  std::vector<uint8_t> entries_;
  std::string names_;
  uint64_t count_ = 0;
};

}  // namespace weft::data
