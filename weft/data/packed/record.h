// A packed record: one sample with its target, behind a header with a checksum. All numbers are little-endian.
//   bytes 0-3    "WREC"
//   byte  4, 5   how the target, how the sample is stored: 0 as it is, 1 zstd, 2 (samples) the file of a picture
//   bytes 6-7    0
//   bytes 8-11   stored bytes of the target
//   bytes 12-15  stored bytes of the sample
//   bytes 16-23  number of the record in its split
//   bytes 24-31  XXH3 (64 bits) of bytes 0-23 and of all that follows the header
//   then target and sample; records begin at multiples of 8
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weft::data {

enum class Storage : uint8_t { plain = 0, zstd = 1, picture = 2 };

struct RecordView {
  Storage target_storage = Storage::plain, sample_storage = Storage::plain;
  uint64_t number = 0;
  std::span<const uint8_t> target, sample;  // as they are stored
};

/// Stored bytes of one part of a record.
struct StoredPart {
  Storage storage = Storage::plain;
  std::vector<uint8_t> bytes;
};

inline constexpr size_t kRecordHeaderBytes = 32, kRecordAlignment = 8;
/// Of one part: more is no sample but a mistake.
inline constexpr size_t kMostRecordBytes = size_t{1} << 30;

/// Compressed, where that makes it smaller.
StoredPart compress(std::span<const uint8_t> bytes);
/// Exactly as many bytes as `destination` has. Error(data), of few words: the caller knows the names.
void expand(Storage storage, std::span<const uint8_t> stored, std::span<uint8_t> destination);

/// With zeros up to the next record's place.
std::vector<uint8_t> write_record(uint64_t number, const StoredPart& target, const StoredPart& sample);

/// Takes `bytes`, which hold one record, apart. Error(data), of few words, for what is none, another one than `number`,
/// or, where `verify`, of another checksum.
RecordView read_record(std::span<const uint8_t> bytes, uint64_t number, bool verify);

/// XXH3 of bytes; of two parts, neither of which changes unseen.
uint64_t checksum_of(std::span<const uint8_t> first, std::span<const uint8_t> second = {});

/// Little-endian numbers of any place.
uint32_t read_u32(const uint8_t* from);
uint64_t read_u64(const uint8_t* from);
void write_u32(uint8_t* to, uint32_t value);
void write_u64(uint8_t* to, uint64_t value);

}  // namespace weft::data
