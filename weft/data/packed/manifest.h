// manifest.json of packed data: what they hold, where it came from and how it was packed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/data/dataset/dataset.h"

namespace weft::data {

enum class PackedForm {
  samples,   // a record is a sample as the data set gave it
  pictures,  // a record is the file of a picture, of which samples of any size are cut
  tokens,    // records are pieces of one row of tokens, of which samples are windows
};

struct PackedShard {
  std::string file;
  int64_t records = 0, bytes = 0;
};

struct PackedSplit {
  std::string name;  // "train" or "test"
  int64_t samples = 0, records = 0;
  int64_t tokens = 0;                   // in the records together, where they hold tokens
  std::vector<int64_t> class_counts{};  // where targets are classes
  std::vector<PackedShard> shards{};
  std::string index_file() const { return name + ".index"; }
};

struct PackedManifest {
  DatasetInfo info;              // of samples, as the training split gave it
  ChannelStatistics statistics;  // of training images as they are packed
  PackedForm form = PackedForm::samples;
  std::string source, weft;  // the spec that was packed, the version that did
  int64_t picture_size = 0;  // pictures: most pixels of the shorter side; 0: any
  int64_t quality = 0;       // of JPEG, where pictures were encoded anew; 0: none was
  std::vector<PackedSplit> splits;

  /// Null where there is none of that name.
  const PackedSplit* find(std::string_view name) const;
};

/// Tokens of a record, but for the last.
inline constexpr int64_t kTokensPerRecord = 1 << 15;

inline constexpr const char* kPackedManifestFile = "manifest.json";

std::string print_packed_manifest(const PackedManifest& manifest);
/// Error(data), naming the file.
PackedManifest parse_packed_manifest(std::string_view text, const std::string& file);

}  // namespace weft::data
