#include "weft/train/confusion_matrix.h"

#include <algorithm>
#include <tuple>

#include "weft/base/error.h"

namespace weft::train {

void ConfusionMatrix::add(std::span<const int32_t> labels, std::span<const int32_t> predicted) {
  check(labels.size() == predicted.size(), "a confusion matrix wants one prediction per label");
  const auto is_class = [&](int32_t value) { return value >= 0 && value < classes(); };
  for (size_t at = 0; at < labels.size(); ++at) {
    const int32_t label = labels[at], guess = predicted[at];
    if (!is_class(label) || !is_class(guess)) continue;
    ++scores_[static_cast<size_t>(label)].samples;
    ++scores_[static_cast<size_t>(guess)].predicted;
    if (label == guess) ++scores_[static_cast<size_t>(label)].correct;
    ++cells_[label * classes() + guess];
  }
}

int64_t ConfusionMatrix::count(int64_t label, int64_t predicted) const {
  const auto found = cells_.find(label * classes() + predicted);
  return found == cells_.end() ? 0 : found->second;
}

ClassScores ConfusionMatrix::scores(int64_t label) const {
  ClassScores scores = scores_[static_cast<size_t>(label)];
  const auto share = [](int64_t part, int64_t whole) -> std::optional<double> {
    if (whole == 0) return std::nullopt;
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  scores.precision = share(scores.correct, scores.predicted);
  scores.recall = share(scores.correct, scores.samples);
  scores.f1 = share(2 * scores.correct, scores.samples + scores.predicted);
  return scores;
}

MeanScores ConfusionMatrix::mean_scores() const {
  MeanScores mean;
  double seen = 0;
  for (int64_t label = 0; label < classes(); ++label) {
    const ClassScores one = scores(label);
    if (one.samples + one.predicted == 0) continue;
    ++seen;
    mean.precision += one.precision.value_or(0);
    mean.recall += one.recall.value_or(0);
    mean.f1 += one.f1.value_or(0);
  }
  if (seen == 0) return mean;
  return {mean.precision / seen, mean.recall / seen, mean.f1 / seen};
}

std::vector<Confusion> ConfusionMatrix::most_confused(size_t limit) const {
  std::vector<Confusion> pairs;
  for (const auto& [cell, count] : cells_)
    if (cell / classes() != cell % classes()) pairs.push_back({cell / classes(), cell % classes(), count});
  std::sort(pairs.begin(), pairs.end(), [](const Confusion& a, const Confusion& b) {
    return std::tuple(-a.count, a.label, a.predicted) < std::tuple(-b.count, b.label, b.predicted);
  });
  pairs.resize(std::min(pairs.size(), limit));
  return pairs;
}

}  // namespace weft::train
