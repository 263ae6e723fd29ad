// The whitening of Page 2018 ("How to train your ResNet", part 8) and Jordan 2024, section 3.1: eigenvectors of the
// second moments of patches, each scaled so that what it gives has a mean square of 1, and their negatives.
#include "weft/run/whitening.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/rng.h"
#include "weft/base/symmetric_eigen.h"
#include "weft/data/dataset/permutation.h"

namespace weft::run {

namespace {

constexpr int64_t kSampledImages = 5000;

/// A row's products: few, so that f32 holds their sum.
float dot(const float* a, const float* b, int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t at = 0; at < count; ++at) sum += a[at] * b[at];
  return sum;
}

Tensor whitening_filters(const Shape& shape, const SymmetricEigen& eigen, double epsilon) {
  Tensor weight(DType::f32, shape);
  const int64_t pixels = shape.elements() / shape[0], half = shape[0] / 2;
  float* first = weight.data_as<float>();
  float* negative = first + half * pixels;
  for (int64_t filter = 0; filter < half; ++filter) {
    // Rounding may leave an eigenvalue just below zero.
    const double scale = 1 / std::sqrt(std::max(0.0, eigen.values[static_cast<size_t>(filter)]) + epsilon);
    for (int64_t pixel = filter * pixels; pixel < (filter + 1) * pixels; ++pixel) {
      first[pixel] = static_cast<float>(scale * eigen.vectors[static_cast<size_t>(pixel)]);
      negative[pixel] = -first[pixel];
    }
  }
  return weight;
}

}  // namespace

std::vector<double> patch_moments(const data::Loader& images, int64_t kernel_height, int64_t kernel_width,
                                  uint64_t seed) {
  const data::Dataset& dataset = images.dataset();
  const Shape& shape = dataset.info().sample_shape;
  const int64_t rows = shape[1] - kernel_height + 1, columns = shape[2] - kernel_width + 1;
  const int64_t sampled = std::min(dataset.size(), kSampledImages);
  std::vector<int64_t> corners;  // where in an image the first of a pixel's places is
  for (int64_t channel = 0; channel < shape[0]; ++channel)
    for (int64_t row = 0; row < kernel_height; ++row)
      for (int64_t column = 0; column < kernel_width; ++column)
        corners.push_back((channel * shape[1] + row) * shape[2] + column);
  const size_t pixels = corners.size();
  std::vector<double> moments(pixels * pixels, 0.0);
  const data::Permutation order(dataset.size(), mix(seed, hash_name("whitening")));
  for (int64_t position = 0; position < sampled; ++position) {
    const Tensor image = images.load_sample(order[position], 0);
    const float* values = image.data_as<float>();
    for (size_t i = 0; i < pixels; ++i)
      for (size_t j = i; j < pixels; ++j)
        for (int64_t row = 0; row < rows; ++row)
          moments[i * pixels + j] += static_cast<double>(
              dot(values + corners[i] + row * shape[2], values + corners[j] + row * shape[2], columns));
  }
  const double places = static_cast<double>(sampled) * static_cast<double>(rows * columns);
  for (size_t i = 0; i < pixels; ++i)
    for (size_t j = i; j < pixels; ++j) moments[j * pixels + i] = moments[i * pixels + j] /= places;
  return moments;
}

bool start_whitening(State& state, const std::vector<models::ParameterSpec>& parameters, const data::Loader& images,
                     uint64_t seed) {
  const data::DatasetInfo& info = images.dataset().info();
  bool any = false;
  for (const models::ParameterSpec& parameter : parameters) {
    if (parameter.initializer.kind != models::Initializer::Kind::whitening) continue;
    const Shape& shape = parameter.shape;
    check(shape.rank() == 4 && shape[0] % 2 == 0 && shape[0] / 2 <= shape.elements() / shape[0],
          "whitening wants filters in pairs, no more than patches have pixels");
    if (info.sample_dtype == DType::i32 || info.sample_shape.rank() != 3 || info.sample_shape[0] != shape[1])
      fail(ErrorKind::usage, "'{}' starts from patches of images of {} channels, '{}' holds {} {}; choose other data",
           parameter.name, shape[1], info.name, info.item(), to_string(info.sample_shape));
    const std::vector<double> moments = patch_moments(images, shape[2], shape[3], seed);
    const SymmetricEigen eigen = symmetric_eigen(moments, shape.elements() / shape[0]);
    state.set(parameter.name, whitening_filters(shape, eigen, parameter.initializer.scale));
    any = true;
  }
  return any;
}

}  // namespace weft::run
