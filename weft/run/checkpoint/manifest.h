// The manifest of a checkpoint: where the run stood, and sizes and checksums of its files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "weft/step/metrics.h"
#include "weft/step/states/state_sharding.h"

namespace weft::run {

struct FileRecord {
  uint64_t bytes = 0;
  uint32_t checksum = 0;  // CRC-32
};

struct BestCheckpoint {
  int64_t step = 0;
  /// Value on the validation part of the metric that decides (TaskEntry::decided_by), negated where lower is better.
  std::optional<double> score{};
  std::optional<double> loss{};  // decides where there is no score
};

/// Whether `one` beats `other`: by a higher score, with equal ones as the newer, which has trained longer, or, without
/// scores, by a lower loss. A value that is not finite beats nothing, and every finite one beats it.
bool is_better(const BestCheckpoint& one, const BestCheckpoint& other);

/// Of a checkpoint that several ranks wrote, each its part of some tensors.
struct PartsRecord {
  int64_t ranks = 0;          // with a part each; 0: there are no parts
  step::Shardings shardings;  // of those tensors, over these ranks
};

struct Manifest {
  std::string spec_hash;
  int64_t seed = 0;
  step::Position position;
  std::optional<step::EpochMetrics> last_epoch;  // the last one that ended
  std::optional<BestCheckpoint> best;            // best checkpoint saved so far
  std::map<std::string, FileRecord> files;
  PartsRecord parts;
  bool has_checksum = false;  // as read: checkpoints of weft 0.1 have none
};

std::string print_manifest(const Manifest& manifest);
/// Error(data) beginning with `name` where the text is not a whole manifest, its checksum is not that of its content,
/// or a field is out of the range that makes sense.
Manifest parse_manifest(std::string_view text, const std::string& name);

/// How many ranks wrote the checkpoint in this folder, each its part; 0: one wrote all of it, or there is none.
/// Error(data).
int64_t ranks_with_parts(const std::filesystem::path& checkpoint);

}  // namespace weft::run
