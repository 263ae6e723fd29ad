// What a data spec says of its test split: a file of its own (test=FILE), or a share that weft sets aside
// (split=0.1, drawn by seed=N).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/data/dataset/data_spec.h"
#include "weft/data/dataset/dataset.h"

namespace weft::data {

class TestSplit {
 public:
  /// Error(usage) where the options give both, or a wrong one.
  TestSplit(const SpecOptions& options, double usual_share);

  bool exists() const { return file_ || share_ > 0; }
  const std::optional<std::string>& file() const { return file_; }
  /// Whether `split` is a part only of what the file or folder holds.
  bool divides(Split split) const { return !file_ && split != Split::all && share_ > 0; }
  /// For each sample, by its stratum, whether it belongs to `split`; all do where nothing is divided. Error(data) where
  /// none does, such as "'a.csv' has 3 rows, of which ...".
  std::vector<bool> members(std::span<const int32_t> strata, Split split, const std::string& path,
                            std::string_view things) const;

 private:
  std::string kind_;
  std::optional<std::string> file_;
  double share_;
  uint64_t seed_;
};

/// Drops the others.
template <typename Sample>
void keep_members(std::vector<Sample>& samples, const std::vector<bool>& members) {
  size_t at = 0;
  std::erase_if(samples, [&](const Sample&) { return !members[at++]; });
}

}  // namespace weft::data
