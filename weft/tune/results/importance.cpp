#include "weft/tune/results/importance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "weft/base/error.h"
#include "weft/tune/space/random.h"

namespace weft::tune {

namespace {

/// Where all coordinates of a tree lie between two thresholds, it predicts one value.
struct TreeBox {
  std::vector<double> low, high;
  double value = 0;

  double width(size_t dimension) const { return high[dimension] - low[dimension]; }
  /// Over all dimensions but these.
  double volume_without(size_t first, size_t second) const {
    double volume = 1;
    for (size_t dimension = 0; dimension < low.size(); ++dimension)
      if (dimension != first && dimension != second) volume *= width(dimension);
    return volume;
  }
};

constexpr size_t kMostPerTree = 2000;  // measurements: more tell little, and take long
constexpr size_t kNoDimension = std::numeric_limits<size_t>::max();

struct TreeSplit {
  size_t dimension = kNoDimension;
  double threshold = 0, gain = 0;
};

/// Makes the boxes of one tree, by the splits that lower the squared error the most (Breiman 2001).
class TreeGrower {
 public:
  TreeGrower(const std::vector<Measurement>& measured, Random& random) : measured_(measured), random_(random) {}

  std::vector<TreeBox> grow() {
    std::vector<size_t> drawn(std::min(measured_.size(), kMostPerTree));
    for (size_t& index : drawn) index = random_.below(measured_.size());
    const size_t dimensions = measured_.front().units.size();
    split({std::vector<double>(dimensions, 0.0), std::vector<double>(dimensions, 1.0), 0}, std::move(drawn));
    return std::move(boxes_);
  }

 private:
  struct Part {
    TreeBox box;
    std::vector<size_t> inside;
  };

  void split(TreeBox whole, std::vector<size_t> all) {
    std::vector<Part> waiting;
    waiting.push_back({std::move(whole), std::move(all)});
    while (!waiting.empty()) {
      Part part = std::move(waiting.back());
      waiting.pop_back();
      const TreeSplit best = best_split(part.inside);
      if (best.dimension == kNoDimension) {
        double sum = 0;
        for (const size_t index : part.inside) sum += measured_[index].loss;
        part.box.value = sum / static_cast<double>(part.inside.size());
        boxes_.push_back(std::move(part.box));
        continue;
      }
      Part below{part.box, {}}, above{std::move(part.box), {}};
      below.box.high[best.dimension] = above.box.low[best.dimension] = best.threshold;
      for (const size_t index : part.inside)
        (measured_[index].units[best.dimension] <= best.threshold ? below : above).inside.push_back(index);
      waiting.push_back(std::move(below));
      waiting.push_back(std::move(above));
    }
  }

  TreeSplit best_split(const std::vector<size_t>& inside) {
    TreeSplit best;
    const auto [least, most] = std::minmax_element(
        inside.begin(), inside.end(), [&](size_t a, size_t b) { return measured_[a].loss < measured_[b].loss; });
    if (measured_[*least].loss == measured_[*most].loss) return best;
    // Of equal splits the first one counts: none of the dimensions is always preferred.
    const size_t dimensions = measured_.front().units.size(), begin = random_.below(dimensions);
    for (size_t count = 0; count < dimensions; ++count) look_at((begin + count) % dimensions, inside, best);
    return best;
  }

  void look_at(size_t dimension, const std::vector<size_t>& inside, TreeSplit& best) {
    sorted_ = inside;
    const auto unit = [&](size_t index) { return measured_[index].units[dimension]; };
    std::sort(sorted_.begin(), sorted_.end(), [&](size_t a, size_t b) { return unit(a) < unit(b); });
    double total = 0;
    for (const size_t index : sorted_) total += measured_[index].loss;
    const auto count = static_cast<double>(sorted_.size());
    double below = 0;
    for (size_t at = 0; at + 1 < sorted_.size(); ++at) {
      below += measured_[sorted_[at]].loss;
      if (unit(sorted_[at]) == unit(sorted_[at + 1])) continue;
      const double of_below = static_cast<double>(at + 1), above = total - below;
      const double gain = below * below / of_below + above * above / (count - of_below) - total * total / count;
      if (best.dimension == kNoDimension || gain > best.gain)
        best = {dimension, (unit(sorted_[at]) + unit(sorted_[at + 1])) / 2, gain};
    }
  }

  const std::vector<Measurement>& measured_;
  Random& random_;
  std::vector<TreeBox> boxes_;
  std::vector<size_t> sorted_;
};

/// The ends of the pieces into which all boxes divide a dimension.
std::vector<double> ends_of(const std::vector<TreeBox>& boxes, size_t dimension) {
  std::vector<double> ends = {0, 1};
  for (const TreeBox& box : boxes) ends.push_back(box.low[dimension]);
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

size_t piece_of(const std::vector<double>& ends, double end) {
  return static_cast<size_t>(std::lower_bound(ends.begin(), ends.end(), end) - ends.begin());
}

double mean_of(const std::vector<TreeBox>& boxes) {
  double mean = 0;
  for (const TreeBox& box : boxes) mean += box.value * box.volume_without(kNoDimension, kNoDimension);
  return mean;
}

double variance_of(const std::vector<TreeBox>& boxes, double mean) {
  double variance = 0;
  for (const TreeBox& box : boxes)
    variance += (box.value - mean) * (box.value - mean) * box.volume_without(kNoDimension, kNoDimension);
  return variance;
}

/// Of the means over all other dimensions.
double variance_along(const std::vector<TreeBox>& boxes, double mean, size_t dimension) {
  const std::vector<double> ends = ends_of(boxes, dimension);
  std::vector<double> change(ends.size() + 1, 0.0);  // of the mean, where a piece begins
  for (const TreeBox& box : boxes) {
    const double part = box.value * box.volume_without(dimension, kNoDimension);
    change[piece_of(ends, box.low[dimension])] += part;
    change[piece_of(ends, box.high[dimension])] -= part;
  }
  double variance = 0, here = 0;
  for (size_t piece = 0; piece + 1 < ends.size(); ++piece) {
    here += change[piece];
    variance += (here - mean) * (here - mean) * (ends[piece + 1] - ends[piece]);
  }
  return variance;
}

/// Of two dimensions: the sums of changes become means by adding along both.
class PlaneOfMeans {
 public:
  PlaneOfMeans(const std::vector<TreeBox>& boxes, size_t first, size_t second)
      : x_(ends_of(boxes, first)), y_(ends_of(boxes, second)), means_(x_.size() * y_.size(), 0.0) {
    for (const TreeBox& box : boxes) {
      const double part = box.value * box.volume_without(first, second);
      const size_t left = piece_of(x_, box.low[first]), right = piece_of(x_, box.high[first]);
      const size_t bottom = piece_of(y_, box.low[second]), top = piece_of(y_, box.high[second]);
      at(left, bottom) += part;
      at(right, top) += part;
      at(right, bottom) -= part;
      at(left, top) -= part;
    }
    for (size_t row = 0; row < y_.size(); ++row)
      for (size_t column = 1; column < x_.size(); ++column) at(column, row) += at(column - 1, row);
    for (size_t row = 1; row < y_.size(); ++row)
      for (size_t column = 0; column < x_.size(); ++column) at(column, row) += at(column, row - 1);
  }

  double variance(double mean) const {
    double variance = 0;
    for (size_t row = 0; row + 1 < y_.size(); ++row)
      for (size_t column = 0; column + 1 < x_.size(); ++column) {
        const double here = means_[row * x_.size() + column] - mean;
        variance += here * here * (x_[column + 1] - x_[column]) * (y_[row + 1] - y_[row]);
      }
    return variance;
  }

  double at_place(double x, double y) const {
    const auto piece = [](const std::vector<double>& ends, double place) {
      return static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), place) - ends.begin()) - 1;
    };
    return means_[piece(y_, y) * x_.size() + piece(x_, x)];
  }

 private:
  double& at(size_t column, size_t row) { return means_[row * x_.size() + column]; }
  std::vector<double> x_, y_;
  std::vector<double> means_;
};

}  // namespace

struct Forest::Tree {
  std::vector<TreeBox> boxes;
};

Forest::~Forest() = default;
Forest::Forest(Forest&&) noexcept = default;
Forest& Forest::operator=(Forest&&) noexcept = default;

Forest::Forest(const std::vector<Measurement>& measured, const ImportanceOptions& options) {
  if (measured.size() < 2)
    fail(ErrorKind::usage, "what the keys do follows from two results or more, and there {} {}; let more trials train",
         measured.size() == 1 ? "is" : "are", measured.size());
  dimensions_ = measured.front().units.size();
  for (int tree = 0; tree < options.trees; ++tree) {
    Random random(options.seed, tree);
    trees_.push_back({TreeGrower(measured, random).grow()});
  }
}

Importances Forest::importances() const {
  Importances found{.keys = std::vector<double>(dimensions_, 0.0), .pairs = {}};
  for (size_t first = 0; first < dimensions_; ++first)
    for (size_t second = first + 1; second < dimensions_; ++second) found.pairs.push_back({first, second, 0});
  for (const Tree& tree : trees_) {
    const double mean = mean_of(tree.boxes), variance = variance_of(tree.boxes, mean);
    if (variance <= 0) continue;  // it drew one value only: nothing decides anything
    const double weight = 1 / (variance * static_cast<double>(trees_.size()));
    std::vector<double> alone;
    for (size_t dimension = 0; dimension < dimensions_; ++dimension) {
      alone.push_back(variance_along(tree.boxes, mean, dimension));
      found.keys[dimension] += alone.back() * weight;
    }
    for (PairShare& pair : found.pairs) {
      const double both = PlaneOfMeans(tree.boxes, pair.first, pair.second).variance(mean);
      pair.share += std::max(0.0, both - alone[pair.first] - alone[pair.second]) * weight;
    }
  }
  std::stable_sort(found.pairs.begin(), found.pairs.end(),
                   [](const PairShare& a, const PairShare& b) { return a.share > b.share; });
  return found;
}

std::vector<double> Forest::mean_over_others(size_t first, size_t second, size_t columns, size_t rows) const {
  std::vector<double> means(columns * rows, 0.0);
  for (const Tree& tree : trees_) {
    const PlaneOfMeans plane(tree.boxes, first, second);
    for (size_t row = 0; row < rows; ++row)
      for (size_t column = 0; column < columns; ++column)
        means[row * columns + column] +=
            plane.at_place((static_cast<double>(column) + 0.5) / static_cast<double>(columns),
                           (static_cast<double>(row) + 0.5) / static_cast<double>(rows)) /
            static_cast<double>(trees_.size());
  }
  return means;
}

std::vector<Measurement> measurements_of(const StudySettings& settings, const std::vector<StudyTrial>& trials) {
  std::vector<Measurement> measured;
  for (const StudyTrial& trial : trials) {
    const bool counts = trial.state != StudyTrial::State::failed && trial.state != StudyTrial::State::refused;
    if (!trial.has_results() || !counts) continue;
    const Point point = settings.space.point(trial.values);
    Measurement one{.units = {}, .loss = settings.objectives.front().loss(trial.results.front())};
    for (size_t dimension = 0; dimension < point.size(); ++dimension)
      one.units.push_back(point[dimension] ? settings.space.to_unit(dimension, *point[dimension]) : 0.5);
    measured.push_back(std::move(one));
  }
  return measured;
}

}  // namespace weft::tune
