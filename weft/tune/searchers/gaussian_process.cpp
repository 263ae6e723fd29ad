// Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006: equations 4.17 (Matern), 5.9 (gradient of
// the marginal likelihood). The priors are those of Optuna's GPSampler.
#include "weft/tune/searchers/gaussian_process.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/base/error.h"
#include "weft/tune/searchers/minimize.h"

namespace weft::tune {

namespace {

constexpr double kLeastNoise = 1e-6;
constexpr double kRoot5 = 2.2360679774997896964;

/// Of a squared, scaled distance: the kernel, and its derivative along that.
struct Matern {
  double value, slope;
};

Matern matern(double square) {
  const double distance = kRoot5 * std::sqrt(square), decay = std::exp(-distance);
  return {(1 + distance + distance * distance / 3) * decay, -5.0 / 6 * (1 + distance) * decay};
}

double squared_difference(double a, double b, bool is_choice) {
  if (is_choice) return a == b ? 0 : 1;
  return (a - b) * (a - b);
}

double scaled_square(const Features& a, const Features& b, const std::vector<bool>& is_choice,
                     const std::vector<double>& inverse_squares) {
  double sum = 0;
  for (size_t index = 0; index < a.size(); ++index)
    sum += inverse_squares[index] * squared_difference(a[index], b[index], is_choice[index]);
  return sum;
}

/// Of the logarithms: inverse squares of the lengths, scale, noise.
KernelParameters parameters_of(const std::vector<double>& logs) {
  KernelParameters parameters;
  for (size_t index = 0; index + 2 < logs.size(); ++index) parameters.inverse_squares.push_back(std::exp(logs[index]));
  parameters.scale = std::exp(logs[logs.size() - 2]);
  parameters.noise = kLeastNoise + std::exp(logs.back());
  return parameters;
}

}  // namespace

Features features_of(const Space& space, const Point& point) {
  Features features(space.size());
  for (size_t index = 0; index < space.size(); ++index) {
    const bool is_choice = space[index].kind == Dimension::Kind::choice;
    if (point[index])
      features[index] = is_choice ? *point[index] : space.to_unit(index, *point[index]);
    else
      features[index] = is_choice ? -1 : 0.5;
  }
  return features;
}

std::vector<bool> choices_of(const Space& space) {
  std::vector<bool> is_choice;
  for (const Dimension& d : space.dimensions()) is_choice.push_back(d.kind == Dimension::Kind::choice);
  return is_choice;
}

double negative_log_posterior(const std::vector<Features>& points, const std::vector<double>& values,
                              const std::vector<bool>& is_choice, const std::vector<double>& logs,
                              std::vector<double>& gradient) {
  const size_t count = points.size(), dimensions = is_choice.size();
  const KernelParameters p = parameters_of(logs);
  gradient.assign(logs.size(), 0.0);
  std::vector<double> kernel(count * count), slopes(count * count);
  for (size_t row = 0; row < count; ++row)
    for (size_t column = 0; column <= row; ++column) {
      const Matern m = matern(scaled_square(points[row], points[column], is_choice, p.inverse_squares));
      kernel[row * count + column] = p.scale * m.value + (row == column ? p.noise : 0);
      slopes[row * count + column] = p.scale * m.slope;
    }
  const std::optional<Cholesky> factor = Cholesky::factor(kernel, count);
  if (!factor) return std::numeric_limits<double>::infinity();
  const std::vector<double> weights = factor->solve(values), inverse = factor->inverse();
  double result = 0.5 * factor->log_determinant();
  for (size_t row = 0; row < count; ++row) result += 0.5 * weights[row] * values[row];
  // d result / d K = (K^-1 - w w^T) / 2; off the diagonal each entry counts twice.
  for (size_t row = 0; row < count; ++row)
    for (size_t column = 0; column <= row; ++column) {
      const double twice = row == column ? 0.5 : 1;
      const double outer = twice * (inverse[row * count + column] - weights[row] * weights[column]);
      const double without_noise = kernel[row * count + column] - (row == column ? p.noise : 0);
      gradient[dimensions] += outer * without_noise;
      if (row == column) {
        gradient[dimensions + 1] += outer * (p.noise - kLeastNoise);
        continue;
      }
      const double slope = outer * slopes[row * count + column];
      for (size_t index = 0; index < dimensions; ++index)
        gradient[index] += slope * p.inverse_squares[index] *
                           squared_difference(points[row][index], points[column][index], is_choice[index]);
    }
  for (size_t index = 0; index < dimensions; ++index) {
    const double x = p.inverse_squares[index];
    result += 0.1 / x + 0.1 * x;
    gradient[index] += -0.1 / x + 0.1 * x;
  }
  // Gamma densities: of the scale with shape 2 and rate 1, of the noise with shape 1.1 and rate 30.
  result += -std::log(p.scale) + p.scale;
  gradient[dimensions] += -1 + p.scale;
  const double noise = p.noise - kLeastNoise;
  result += -0.1 * std::log(p.noise) + 30 * p.noise;
  gradient[dimensions + 1] += -0.1 * noise / p.noise + 30 * noise;
  return result;
}

KernelParameters GaussianProcess::fit(const std::vector<Features>& points, const std::vector<double>& values,
                                      const std::vector<bool>& is_choice) {
  const SmoothFunction function = [&](const std::vector<double>& at, std::vector<double>& gradient) {
    const bool is_sane = std::all_of(at.begin(), at.end(), [](double log) { return std::abs(log) < 25; });
    if (!is_sane) return std::numeric_limits<double>::infinity();
    return negative_log_posterior(points, values, is_choice, at, gradient);
  };
  Minimum best{{}, std::numeric_limits<double>::infinity()};
  for (const double log_inverse_square : {0.0, 2.5}) {
    std::vector<double> start(is_choice.size() + 2, log_inverse_square);
    start[is_choice.size()] = 0;
    start.back() = std::log(1e-2);
    Minimum found = minimize(function, std::move(start), 40);
    if (found.value < best.value) best = std::move(found);
  }
  check(!best.at.empty(), "a kernel with noise is positive definite");
  return parameters_of(best.at);
}

GaussianProcess::GaussianProcess(std::vector<Features> points, std::vector<double> values, std::vector<bool> is_choice,
                                 KernelParameters parameters)
    : points_(std::move(points)), is_choice_(std::move(is_choice)), parameters_(std::move(parameters)) {
  const size_t count = points_.size();
  std::vector<double> kernel(count * count);
  for (size_t row = 0; row < count; ++row)
    for (size_t column = 0; column < row; ++column)
      kernel[row * count + column] =
          parameters_.scale *
          matern(scaled_square(points_[row], points_[column], is_choice_, parameters_.inverse_squares)).value;
  // Points that lie close together may want more than the noise.
  for (double jitter = 0; factor_ == nullptr; jitter = std::max(1e-9, 10 * jitter)) {
    for (size_t row = 0; row < count; ++row)
      kernel[row * count + row] = parameters_.scale * (1 + jitter) + parameters_.noise;
    if (std::optional<Cholesky> factor = Cholesky::factor(kernel, count))
      factor_ = std::make_unique<Cholesky>(std::move(*factor));
    check(factor_ != nullptr || jitter < 1, "a kernel with noise is positive definite");
  }
  weights_ = factor_->solve(std::move(values));
}

Prediction GaussianProcess::predict(const Features& at, bool with_gradient) const {
  const size_t count = points_.size(), dimensions = is_choice_.size();
  std::vector<double> kernel(count), slopes(count);
  for (size_t row = 0; row < count; ++row) {
    const Matern m = matern(scaled_square(at, points_[row], is_choice_, parameters_.inverse_squares));
    kernel[row] = parameters_.scale * m.value;
    slopes[row] = parameters_.scale * m.slope;
  }
  Prediction prediction;
  for (size_t row = 0; row < count; ++row) prediction.mean += weights_[row] * kernel[row];
  if (!with_gradient) {
    const std::vector<double> half = factor_->solve_lower(std::move(kernel));
    double explained = 0;
    for (const double value : half) explained += value * value;
    prediction.variance = std::max(1e-12, parameters_.scale - explained);
    return prediction;
  }
  const std::vector<double> solved = factor_->solve(kernel);
  double explained = 0;
  for (size_t row = 0; row < count; ++row) explained += kernel[row] * solved[row];
  prediction.variance = std::max(1e-12, parameters_.scale - explained);
  prediction.mean_gradient.assign(dimensions, 0.0);
  prediction.variance_gradient.assign(dimensions, 0.0);
  for (size_t row = 0; row < count; ++row)
    for (size_t index = 0; index < dimensions; ++index) {
      if (is_choice_[index]) continue;
      const double along = slopes[row] * 2 * parameters_.inverse_squares[index] * (at[index] - points_[row][index]);
      prediction.mean_gradient[index] += weights_[row] * along;
      prediction.variance_gradient[index] -= 2 * solved[row] * along;
    }
  return prediction;
}

}  // namespace weft::tune
