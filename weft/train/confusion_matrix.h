// A confusion matrix: how often each class was predicted as each other class, with precision, recall and F1 per
// class.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace weft::train {

/// The scores of one class against all others. A score whose denominator is 0 is absent.
struct ClassScores {
  int64_t samples = 0;              // of this class
  int64_t predicted = 0;            // predicted as this class, rightly or not
  int64_t correct = 0;              // of this class and predicted as it
  std::optional<double> precision;  // correct / predicted
  std::optional<double> recall;     // correct / samples: the accuracy within the class
  std::optional<double> f1;         // their harmonic mean, 2 correct / (samples + predicted)
};

/// Means over the classes that have samples or predictions. Each class counts alike, and absent scores count as 0 (as
/// in scikit-learn's "macro avg"). The mean recall over classes with samples is also called balanced accuracy.
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

  /// Adds one sample per element. Skips a sample whose label or prediction is no class, such as an ignored label.
  void add(std::span<const int32_t> labels, std::span<const int32_t> predicted);

  int64_t classes() const { return static_cast<int64_t>(scores_.size()); }
  int64_t count(int64_t label, int64_t predicted) const;
  ClassScores scores(int64_t label) const;
  MeanScores mean_scores() const;
  /// Pairs of different classes, by falling count, then by label and prediction; at most `limit` of them.
  std::vector<Confusion> most_confused(size_t limit) const;

 private:
  std::vector<ClassScores> scores_;             // counts only
  std::unordered_map<int64_t, int64_t> cells_;  // by label * classes + predicted; absent: 0
};

}  // namespace weft::train
