#include "weft/quantize/adaround.h"

#include <algorithm>
#include <cmath>

#include "weft/quantize/group_weights.h"

namespace weft::quantize {

namespace {

constexpr double kZeta = 1.1, kGamma = -0.1;  // by which the sigmoid is stretched
constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

/// One row: its weights are rounded together, since their errors meet in one output.
class Row {
 public:
  Row(const float* weights, const IntegerMatrix& scales, int64_t row, int bits) : size_(scales.columns) {
    const auto highest = static_cast<double>(highest_of_bits(bits)), lowest = bits == 2 ? -2.0 : -highest;
    for (int64_t c = 0; c < size_; ++c) {
      const auto scale = static_cast<double>(scales.scale_at(row, c)), steps = static_cast<double>(weights[c]) / scale;
      const double floor = std::clamp(std::floor(steps), lowest, highest - 1);
      const double rest = std::clamp(steps - floor, 0.01, 0.99);
      scale_.push_back(scale);
      floor_.push_back(floor);
      weight_.push_back(static_cast<double>(weights[c]));
      v_.push_back(-std::log((kZeta - kGamma) / (rest - kGamma) - 1));  // h(v) is the rest
    }
    mean_.assign(v_.size(), 0);
    square_.assign(v_.size(), 0);
    error_.resize(v_.size());
    slope_.resize(v_.size());
    gradient_.resize(v_.size());
  }

  void step(const std::vector<double>& moments, double norm, int number, double regularizer, double beta,
            double learning_rate) {
    for (size_t c = 0; c < v_.size(); ++c) {
      const double sigmoid = 1 / (1 + std::exp(-v_[c])), stretched = sigmoid * (kZeta - kGamma) + kGamma;
      const double h = std::clamp(stretched, 0.0, 1.0);
      slope_[c] = stretched > 0 && stretched < 1 ? sigmoid * (1 - sigmoid) * (kZeta - kGamma) : 0;
      error_[c] = scale_[c] * (floor_[c] + h) - weight_[c];
      const double away = 2 * h - 1, magnitude = std::fabs(away);
      gradient_[c] = -regularizer * beta * std::pow(magnitude, beta - 1) * 2 * (away < 0 ? -1 : 1);
    }
    for (size_t i = 0; i < v_.size(); ++i) {
      const double* const row = moments.data() + i * v_.size();
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (size_t j = 0; j < v_.size(); ++j) sum += row[j] * error_[j];
      gradient_[i] = (2 * sum * scale_[i] / norm + gradient_[i]) * slope_[i];
    }
    const double correction1 = 1 - std::pow(kBeta1, number), correction2 = 1 - std::pow(kBeta2, number);
    for (size_t c = 0; c < v_.size(); ++c) {
      mean_[c] = kBeta1 * mean_[c] + (1 - kBeta1) * gradient_[c];
      square_[c] = kBeta2 * square_[c] + (1 - kBeta2) * gradient_[c] * gradient_[c];
      v_[c] -= learning_rate * (mean_[c] / correction1) / (std::sqrt(square_[c] / correction2) + kEpsilon);
    }
  }

  void store(int8_t* integers) const {
    for (size_t c = 0; c < v_.size(); ++c) {
      const double h = 1 / (1 + std::exp(-v_[c])) * (kZeta - kGamma) + kGamma;
      integers[c] = static_cast<int8_t>(floor_[c] + (h >= 0.5 ? 1 : 0));
    }
  }

 private:
  int64_t size_;
  std::vector<double> scale_, floor_, weight_, v_, mean_, square_, error_, slope_, gradient_;
};

double row_error(const int8_t* integers, const float* weights, const IntegerMatrix& scales, int64_t row,
                 const std::vector<double>& moments) {
  const auto size = static_cast<size_t>(scales.columns);
  std::vector<double> difference(size);
  for (size_t c = 0; c < size; ++c)
    difference[c] =
        static_cast<double>(integers[c]) * static_cast<double>(scales.scale_at(row, static_cast<int64_t>(c))) -
        static_cast<double>(weights[c]);
  double error = 0;
  for (size_t i = 0; i < size; ++i)
    for (size_t j = 0; j < size; ++j) error += difference[i] * difference[j] * moments[i * size + j];
  return error;
}

}  // namespace

void round_adaptively(IntegerMatrix& quantized, const Matrix& weights, const SecondMoments& inputs, int bits,
                      const AdaRoundOptions& options) {
  round_to_nearest(quantized, weights, bits);
  const auto size = static_cast<size_t>(weights.columns);
  std::vector<double> moments(size * size);
  double trace = 0;
  for (int64_t i = 0; i < weights.columns; ++i)
    for (int64_t j = 0; j < weights.columns; ++j) {
      moments[static_cast<size_t>(i) * size + static_cast<size_t>(j)] = inputs.at(i, j);
      if (i == j) trace += inputs.at(i, j);
    }
  if (!(trace > 0)) return;
  std::vector<int8_t> found(size);
  for (int64_t r = 0; r < weights.rows; ++r) {
    Row row(weights.row(r), quantized, r, bits);
    // Errors count in steps of the row's scale, so that the regularizer weighs the same in every layer.
    const auto scale = static_cast<double>(quantized.scale_at(r, 0));
    const double norm = scale * scale * trace / static_cast<double>(size);
    for (int step = 0; step < options.steps; ++step) {
      const double progress = (static_cast<double>(step) / options.steps - options.warm_up) / (1 - options.warm_up);
      const double beta =
          options.last_beta + (options.first_beta - options.last_beta) * 0.5 *
                                  (1 + std::cos(std::clamp(progress, 0.0, 1.0) * 3.14159265358979323846));
      row.step(moments, norm, step + 1, progress < 0 ? 0 : options.regularizer, beta, options.learning_rate);
    }
    row.store(found.data());
    int8_t* const nearest = quantized.integers.data() + r * weights.columns;
    if (row_error(found.data(), weights.row(r), quantized, r, moments) <
        row_error(nearest, weights.row(r), quantized, r, moments))
      std::copy(found.begin(), found.end(), nearest);
  }
}

}  // namespace weft::quantize
