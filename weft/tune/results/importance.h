// Which keys decide the result: functional analysis of variance on a random forest (Hutter, Hoos and Leyton-Brown 2014,
// "An efficient approach for assessing hyperparameter importance"). Each tree divides the unit cube of the space into
// boxes, so that means over all other keys, and the variance of them, are sums over boxes without any sampling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "weft/tune/space/space.h"
#include "weft/tune/study/study.h"

namespace weft::tune {

struct ImportanceOptions {
  int trees = 64;
  int64_t seed = 1;
};

struct PairShare {
  size_t first = 0, second = 0;  // dimensions
  double share = 0;
};

/// Of the variance of the forest's predictions over the whole space: means over the trees. What is left of 1 is of
/// three keys and more together.
struct Importances {
  std::vector<double> keys;           // by dimension: of this one alone
  std::vector<PairShare> pairs = {};  // of two together, beyond what each does alone; the largest first
};

/// A place of the unit cube, and the loss there.
struct Measurement {
  std::vector<double> units;
  double loss = 0;
};

class Forest {
 public:
  /// Trees to the last measurement, each on as many drawn with repetition, but at most 2,000. Error(usage) for less
  /// than two measurements.
  Forest(const std::vector<Measurement>& measured, const ImportanceOptions& options = {});
  ~Forest();
  Forest(Forest&&) noexcept;
  Forest& operator=(Forest&&) noexcept;

  Importances importances() const;
  /// The mean of the predictions over all other dimensions, at `columns` x `rows` places in the middle of equal pieces
  /// of [0, 1]: element row * columns + column, columns along `first`.
  std::vector<double> mean_over_others(size_t first, size_t second, size_t columns, size_t rows) const;

 private:
  struct Tree;
  size_t dimensions_ = 0;
  std::vector<Tree> trees_;
};

/// Of all trials with results: by unit coordinates of the space, logarithms taken, and by the first objective. A
/// dimension that a trial does not have is in the middle there.
std::vector<Measurement> measurements_of(const StudySettings& settings, const std::vector<StudyTrial>& trials);

}  // namespace weft::tune
