// One record and one index, byte by byte.
#include "tests/support/files_for_tests.h"
#include "weft/data/packed/index.h"
#include "weft/data/packed/manifest.h"
#include "weft/data/packed/record.h"

namespace weft::data {
namespace {

Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

TEST(PackedChecksum, IsXxh3) {
  // From xxHash's own sanity test (XXH3_64bits, seed 0).
  EXPECT_EQ(checksum_of({}), 0x2D06800538D394C2u);
}

TEST(PackedRecord, GivesBackWhatWasWritten) {
  const Bytes target = bytes_of("target"), sample(1000, 7);
  const StoredPart small = compress(sample), plain{Storage::plain, target};
  EXPECT_EQ(small.storage, Storage::zstd);
  EXPECT_LT(small.bytes.size(), 50u);
  const Bytes record = write_record(12, plain, small);
  EXPECT_EQ(record.size() % kRecordAlignment, 0u);
  const RecordView view = read_record(record, 12, true);
  EXPECT_EQ(Bytes(view.target.begin(), view.target.end()), target);
  Bytes out(1000);
  expand(view.sample_storage, view.sample, out);
  EXPECT_EQ(out, sample);
}

TEST(PackedRecord, WhatDoesNotShrinkStaysAsItIs) {
  Bytes noise(64);
  uint32_t seed = 1;
  for (uint8_t& byte : noise) byte = static_cast<uint8_t>((seed = seed * 1664525u + 1013904223u) >> 24);
  EXPECT_EQ(compress(noise).storage, Storage::plain);
  EXPECT_EQ(compress(noise).bytes, noise);
}

TEST(PackedRecord, EveryChangedBitIsFound) {
  const Bytes record = write_record(3, {Storage::plain, bytes_of("abc")}, {Storage::plain, bytes_of("defgh")});
  for (size_t bit = 0; bit < 8 * record.size(); ++bit) {
    Bytes changed = record;
    changed[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    expect_error([&] { read_record(changed, 3, true); }, ErrorKind::data, {});
  }
  for (size_t size = 0; size < record.size(); ++size)
    expect_error([&] { read_record(std::span(record).first(size), 3, true); }, ErrorKind::data, {});
  expect_error([&] { read_record(record, 4, true); }, ErrorKind::data, {"record 3 stands in its place"});
}

TEST(PackedRecord, ExpandsToExactlyTheBytesThatAreWanted) {
  const StoredPart part = compress(Bytes(1000, 7));
  Bytes out(999), more(1001);
  expect_error([&] { expand(part.storage, part.bytes, out); }, ErrorKind::data, {"zstd data is damaged"});
  expect_error([&] { expand(part.storage, part.bytes, more); }, ErrorKind::data, {"1000 bytes instead of 1001"});
  expect_error([&] { expand(Storage::plain, Bytes(3), out); }, ErrorKind::data, {"3 bytes instead of 999"});
  expect_error([&] { expand(Storage::picture, Bytes(3), out); }, ErrorKind::data, {"picture"});
}

TEST(PackedIndex, GivesBackWhatWasWritten) {
  PackedIndexWriter writer;
  writer.add({.offset = 5'000'000'000, .bytes = 77, .shard = 2, .label = 9, .name = "a/b.jpg"});
  writer.add({.offset = 8, .bytes = 16, .shard = 0, .label = 0, .name = ""});
  writer.add({.offset = 24, .bytes = 16, .shard = 1, .label = 4, .name = "c"});
  const Bytes bytes = writer.finish();
  const PackedIndex index(bytes, "i", 3);
  ASSERT_EQ(index.size(), 3);
  EXPECT_EQ(index[0].offset, 5'000'000'000u);
  EXPECT_EQ(index[0].bytes, 77u);
  EXPECT_EQ(index[0].shard, 2u);
  EXPECT_EQ(index[0].label, 9);
  EXPECT_EQ(index[0].name, "a/b.jpg");
  EXPECT_EQ(index[1].name, "");
  EXPECT_EQ(index[2].name, "c");
  expect_error([&] { PackedIndex(bytes, "i", 2); }, ErrorKind::data, {"'i' contradicts itself"});
}

TEST(PackedIndex, EveryChangedBitIsFound) {
  PackedIndexWriter writer;
  writer.add({.offset = 8, .bytes = 16, .shard = 0, .label = 0, .name = "xy"});
  const Bytes bytes = writer.finish();
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    Bytes changed = bytes;
    changed[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    expect_error([&] { PackedIndex(changed, "i", 1); }, ErrorKind::data, {"'i'"});
  }
  for (size_t size = 0; size < bytes.size(); ++size)
    expect_error([&] { PackedIndex(std::span(bytes).first(size), "i", 1); }, ErrorKind::data, {"'i'"});
}

TEST(PackedManifest, ShardsLieInItsFolder) {
  PackedManifest manifest;
  manifest.info = {"t", Shape{2}, 2, {}};
  manifest.info.sample_dtype = DType::f32;
  manifest.splits = {{.name = "train", .samples = 5, .records = 5, .shards = {{"train-00000.shard", 5, 100}}}};
  const std::string good = print_packed_manifest(manifest);
  EXPECT_EQ(print_packed_manifest(parse_packed_manifest(good, "m")), good);
  for (const std::string file : {"../x", "a/b", "", ".."}) {
    manifest.splits[0].shards[0].file = file;
    expect_error([&] { parse_packed_manifest(print_packed_manifest(manifest), "m"); }, ErrorKind::data,
                 {"'m' is damaged"});
  }
}

}  // namespace
}  // namespace weft::data
