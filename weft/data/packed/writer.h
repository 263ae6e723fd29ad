// Writes packed data: shards of records, an index per split and a manifest, into a folder that appears when all of it
// is on the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "weft/data/dataset/dataset.h"
#include "weft/data/packed/manifest.h"
#include "weft/data/packed/records.h"

namespace weft::data {

struct PackProgress {
  int64_t records = 0, of = 0;  // done, in all
  uint64_t bytes = 0;           // written
};

struct PackOptions {
  int64_t shard_bytes = 256'000'000;  // a shard ends with the record that reaches it
  int64_t picture_size = 0;           // pictures with a longer shorter side are made that small; 0: they stay
  int64_t quality = 0;                // of JPEG; 0: 90 for pictures made smaller, others keep their file's bytes
  std::string max_bad_records = kDefaultDamageLimit;  // samples that cannot be read and are left out, of each split
  int threads = 1;
  std::string source, weft;  // for the manifest
  std::function<void(const PackProgress&)> progress = {};
  std::function<void(const std::string&)> note = {};  // a line for each sample that is left out
  std::function<bool()> stop_requested = {};
};

struct PackResult {
  bool finished = false;  // false: stopped on request, nothing is left behind
  PackedManifest manifest;
  uint64_t bytes = 0;  // of all shards
  int64_t left_out = 0;
};

/// `test` may be null. Error(usage) where `directory` holds something, or the options do not fit the data; Error(data)
/// where too many samples cannot be read; Error(io) where the disk takes no more. Nothing is left behind then.
PackResult pack(const Dataset& training, const Dataset* test, const std::filesystem::path& directory,
                const PackOptions& options);

}  // namespace weft::data
