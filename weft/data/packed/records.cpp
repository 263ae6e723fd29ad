#include "weft/data/packed/records.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/parallel.h"
#include "weft/data/texts/utf8.h"

namespace weft::data {

namespace fs = std::filesystem;

PackedRecords::PackedRecords(const fs::path& directory, const PackedSplit& split, const std::string& limit)
    : directory_(directory),
      split_(split),
      index_file_(directory / split.index_file()),
      index_(index_file_.bytes(), (directory / split.index_file()).string(), split.shards.size()),
      damage_(split.records, parse_damage_limit(limit, split.records, kDamageOption),
              {"packed", split.name + " records",
               fmt::format("copy the shards again (`weft data {} --verify` names all)",
                           quoted_for_shell("packed:" + directory.string()))}),
      verified_(static_cast<size_t>(split.records)) {
  if (index_.size() != split.records)
    fail(ErrorKind::data, "[packed] '{}' has {} records, the manifest says {}; copy both again",
         (directory / split.index_file()).string(), index_.size(), split.records);
  for (const PackedShard& shard : split.shards) {
    std::error_code code;
    if (fs::is_regular_file(directory / shard.file, code))
      shards_.emplace_back(MappedFile(directory / shard.file));
    else
      shards_.emplace_back(std::nullopt);
  }
}

std::span<const uint8_t> PackedRecords::bytes_of(const IndexEntry& entry) const {
  const std::optional<MappedFile>& shard = shards_[entry.shard];
  if (!shard) fail(ErrorKind::data, "its shard is missing");
  const std::span<const uint8_t> all = shard->bytes();
  if (entry.offset > all.size() || entry.bytes > all.size() - entry.offset)
    fail(ErrorKind::data, "its shard is cut off at {} of {} bytes", all.size(), split_.shards[entry.shard].bytes);
  return all.subspan(entry.offset, entry.bytes);
}

std::string PackedRecords::describe(int64_t number, const std::string& reason) const {
  const IndexEntry entry = index_[number];
  const std::string name = entry.name.empty() ? "" : fmt::format(" ('{}')", printable_utf8(entry.name));
  return fmt::format("'{}': record {}{} is damaged: {}", (directory_ / split_.shards[entry.shard].file).string(),
                     number, name, reason);
}

void PackedRecords::note_damaged(int64_t number, const std::string& reason) const {
  damage_.add(number, describe(number, reason));
}

bool PackedRecords::is_whole(int64_t number) const {
  std::atomic<bool>& verified = verified_[static_cast<size_t>(number)];
  if (!verified && !damage_.has(number)) try {
      read_record(bytes_of(index_[number]), static_cast<uint64_t>(number), true);
      verified = true;
    } catch (const Error& error) {
      note_damaged(number, error.what());
    }
  return verified && !damage_.has(number);
}

int64_t PackedRecords::whole_from(int64_t number) const {
  for (int64_t step = 0; step < size(); ++step)
    if (const int64_t at = (number + step) % size(); is_whole(at)) return at;
  fail(ErrorKind::data, "[packed] '{}': every record of {} is damaged; copy the shards again", directory_.string(),
       split_.name);
}

RecordView PackedRecords::read(int64_t number) const {
  return read_record(bytes_of(index_[number]), static_cast<uint64_t>(number), false);
}

void PackedRecords::will_need(int64_t number) const {
  const IndexEntry entry = index_[number];
  if (shards_[entry.shard]) shards_[entry.shard]->will_need(entry.offset, entry.bytes);
}

std::vector<int64_t> PackedRecords::verify_all(int threads) const {
  std::mutex mutex;
  std::optional<Error> refused;
  parallel_for(threads, size(), 64, [&](int64_t begin, int64_t end) {
    try {
      for (int64_t number = begin; number < end; ++number) is_whole(number);
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      if (!refused) refused = error;
    }
  });
  if (refused) throw Error(*refused);
  std::vector<int64_t> numbers;
  for (int64_t number = 0; number < size(); ++number)
    if (is_whole(number)) numbers.push_back(number);
  return numbers;
}

}  // namespace weft::data
