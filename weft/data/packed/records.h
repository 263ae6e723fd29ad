// The records of one split, mapped into memory: each is verified when it is first asked for, damaged ones are counted,
// named and passed over up to a limit.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/mapped_file.h"
#include "weft/data/dataset/damage_log.h"
#include "weft/data/packed/index.h"
#include "weft/data/packed/manifest.h"
#include "weft/data/packed/record.h"

namespace weft::data {

inline constexpr const char* kDefaultDamageLimit = "1%";

class PackedRecords {
 public:
  /// Error(io) or Error(data) for an index that is missing or damaged. A shard that is missing or cut off costs the
  /// records that it lacks. `limit` as in parse_damage_limit().
  PackedRecords(const std::filesystem::path& directory, const PackedSplit& split, const std::string& limit);

  int64_t size() const { return index_.size(); }
  /// This record, or the next behind it that is whole. Error(data), naming some, where more than the limit are not.
  int64_t whole_from(int64_t number) const;
  /// A record that whole_from() gave.
  RecordView read(int64_t number) const;
  IndexEntry entry(int64_t number) const { return index_[number]; }
  void will_need(int64_t number) const;

  /// Notes that what a record holds cannot be used, though it is whole. Error(data) as whole_from().
  void note_damaged(int64_t number, const std::string& reason) const;
  /// Verifies all that have not been asked for, and gives the whole ones.
  std::vector<int64_t> verify_all(int threads) const;

  int64_t damaged() const { return damage_.count(); }
  /// Shard, record, name of the picture and reason of each damaged one, by number.
  std::vector<DamagedSample> list_damaged() const { return damage_.all(); }

 private:
  std::span<const uint8_t> bytes_of(const IndexEntry& entry) const;
  bool is_whole(int64_t number) const;
  std::string describe(int64_t number, const std::string& reason) const;

  std::filesystem::path directory_;
  PackedSplit split_;
  MappedFile index_file_;
  PackedIndex index_;
  std::vector<std::optional<MappedFile>> shards_;  // none: missing
  DamageLog damage_;
  mutable std::vector<std::atomic<bool>> verified_;  // and found whole
};

}  // namespace weft::data
