// A density over a space, estimated from points: a mixture of one kernel for each point and one that covers the whole
// space. A kernel is a product over the dimensions: truncated normal distributions of numbers, in pieces for integers,
// and lists of probabilities of choices.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "weft/tune/space/random.h"
#include "weft/tune/space/space.h"

namespace weft::tune {

class ParzenEstimator {
 public:
  /// `weights` of the points, above 0; the kernel of the whole space weighs 1. The space must live longer.
  ParzenEstimator(const Space& space, const std::vector<const Point*>& points, std::vector<double> weights);

  Point sample(Random& random) const;
  /// Logarithm, of the dimensions that the point has, up to the measure of unit coordinates.
  double log_density(const Point& point) const;

 private:
  /// Of one kernel along one dimension.
  struct Part {
    bool is_wide = false;  // the point lacks the dimension: any value is as likely
    double mean = 0.5;     // unit coordinates; of a choice its index
    double deviation = 1;
    double log_norm = 0;  // what its density is divided by
  };
  const Part& part(size_t kernel, size_t index) const { return parts_[kernel * space_.size() + index]; }
  void add_parts(const std::vector<const Point*>& points, size_t index);
  double sample(const Part& part, size_t index, Random& random) const;
  void add_log_densities(size_t index, double coordinate, std::vector<double>& logs) const;
  std::vector<double> discrete_log_densities(size_t index, double coordinate) const;
  double choice_share(const Part& part, size_t index, size_t value) const;

  const Space& space_;
  std::vector<double> weights_;  // sum 1, the last one that of the whole space
  std::vector<Part> parts_;      // [kernels, dimensions]
  /// Of integers and choices, by dimension and coordinate: candidates share them, and each takes a while.
  mutable std::map<std::pair<size_t, double>, std::vector<double>> discrete_;
};

}  // namespace weft::tune
