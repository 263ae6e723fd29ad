// A Gaussian process over points of a space: a Matern kernel of smoothness 5/2 with a length of its own for each
// dimension, and noise. Choices are as far from each other as one-hot vectors are; a dimension that a point lacks is in
// the middle, as the choice that rules it out tells the points apart already.
#pragma once

#include <memory>
#include <vector>

#include "weft/tune/searchers/cholesky.h"
#include "weft/tune/space/space.h"

namespace weft::tune {

/// A point as the process sees it: unit coordinates, and of choices their index.
using Features = std::vector<double>;
Features features_of(const Space& space, const Point& point);
/// Of each dimension: whether it is a choice.
std::vector<bool> choices_of(const Space& space);

struct KernelParameters {
  std::vector<double> inverse_squares;  // of the lengths
  double scale = 1;                     // variance of the function
  double noise = 1e-4;                  // variance of what is measured around it
};

struct Prediction {
  double mean = 0, variance = 1;                              // of the function, without noise
  std::vector<double> mean_gradient, variance_gradient = {};  // along the dimensions; 0 along choices
};

class GaussianProcess {
 public:
  /// `values` should have mean 0 and deviation 1. The parameters are those of the largest posterior density: the
  /// marginal likelihood, and priors that keep lengths and noise in reason where there are few points.
  static KernelParameters fit(const std::vector<Features>& points, const std::vector<double>& values,
                              const std::vector<bool>& is_choice);

  GaussianProcess(std::vector<Features> points, std::vector<double> values, std::vector<bool> is_choice,
                  KernelParameters parameters);

  Prediction predict(const Features& at, bool with_gradient = false) const;
  const KernelParameters& parameters() const { return parameters_; }

 private:
  std::vector<Features> points_;
  std::vector<bool> is_choice_;
  KernelParameters parameters_;
  std::unique_ptr<Cholesky> factor_;
  std::vector<double> weights_;  // K^-1 values
};

/// Minus the logarithm of that density and, along the logarithms of the parameters (lengths, scale, noise), its
/// gradient.
double negative_log_posterior(const std::vector<Features>& points, const std::vector<double>& values,
                              const std::vector<bool>& is_choice, const std::vector<double>& logs,
                              std::vector<double>& gradient);

}  // namespace weft::tune
