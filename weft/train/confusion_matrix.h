// How often each class was taken for each other one, and what follows from that: precision, recall and F1 per class.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace weft::train {

/// Of one class against all others; what would be a division by zero is absent.
struct ClassScores {
  int64_t samples = 0;              // of this class
  int64_t predicted = 0;            // as this class, rightly or not
  int64_t correct = 0;              // both
  std::optional<double> precision;  // correct / predicted
  std::optional<double> recall;     // correct / samples: the accuracy within the class
  std::optional<double> f1;         // their harmonic mean, 2 correct / (samples + predicted)
};

/// Means over the classes that have samples or predictions, each class counting alike, absent scores as 0 (as
/// scikit-learn's "macro avg"). The mean recall over classes with samples is known as balanced accuracy.
struct MeanScores {
  double precision = 0, recall = 0, f1 = 0;
};

/// Samples of one class that were taken for another one.
struct Confusion {
  int64_t label = 0, predicted = 0, count = 0;
};

class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(int64_t classes) : scores_(static_cast<size_t>(classes)) {}

  /// One more sample per element. A label or prediction that is no class, such as an ignored label, is passed over.
  void add(std::span<const int32_t> labels, std::span<const int32_t> predicted);

  int64_t classes() const { return static_cast<int64_t>(scores_.size()); }
  int64_t count(int64_t label, int64_t predicted) const;
  ClassScores scores(int64_t label) const;
  MeanScores mean_scores() const;
  /// The pairs of different classes by falling count, then by label and prediction; at most `limit` of them.
  std::vector<Confusion> most_confused(size_t limit) const;

 private:
  std::vector<ClassScores> scores_;             // counts only
  std::unordered_map<int64_t, int64_t> cells_;  // by label * classes + predicted; absent: 0
};

}  // namespace weft::train
