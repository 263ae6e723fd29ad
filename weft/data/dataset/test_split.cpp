#include "weft/data/dataset/test_split.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/data/dataset/stratified_split.h"

namespace weft::data {

TestSplit::TestSplit(const SpecOptions& options, double usual_share)
    : kind_(options.kind()), file_(options.find("test")), share_(options.fraction("split", usual_share)) {
  seed_ = static_cast<uint64_t>(options.integer("seed", 0, 0, INT64_MAX));
  if (file_ && options.find("split"))
    fail(ErrorKind::usage, "[{}] test={} and split={} exclude each other; leave one away", kind_, *file_,
         *options.find("split"));
}

std::vector<bool> TestSplit::members(std::span<const int32_t> strata, Split split, const std::string& path,
                                     std::string_view things) const {
  if (!divides(split)) return std::vector<bool>(strata.size(), true);
  std::vector<bool> members = stratified_split(strata, share_, seed_);
  if (split == Split::train) members.flip();
  if (std::none_of(members.begin(), members.end(), [](bool member) { return member; }))
    fail(ErrorKind::data,
         "[{}] '{}' has {} {}, of which split={} leaves none for the {} split; add more, or say split=0", kind_, path,
         strata.size(), things, share_, name_of(split));
  return members;
}

}  // namespace weft::data
