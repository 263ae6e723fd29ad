// Signals: Fourier transforms, windows and the mel scale. The host computes them, in doubles: they prepare what a
// network reads.
#include <algorithm>
#include <cmath>
#include <complex>

#include "weft/onnx/operators/operators.h"
#include "weft/tensor/element.h"

namespace weft::onnx {

namespace {

using Values = std::vector<HostValue>;
using Signal = std::vector<std::complex<double>>;

constexpr int64_t kMostElements = int64_t{1} << 30;

/// exp(sign 2 pi i k / n), for k * k below 2^63 taken modulo n first.
std::complex<double> root(int64_t k, int64_t n, int sign) {
  const double angle = 2 * M_PI * static_cast<double>(k % n) / static_cast<double>(n);
  return {std::cos(angle), sign * std::sin(angle)};
}

/// Cooley and Tukey 1965, in place; the length is a power of two.
void transform_power_of_two(Signal& x, int sign) {
  const size_t n = x.size();
  for (size_t i = 1, j = 0; i < n; ++i) {
    size_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  Signal roots(n / 2);
  for (size_t k = 0; k < n / 2; ++k) roots[k] = root(static_cast<int64_t>(k), static_cast<int64_t>(n), sign);
  for (size_t length = 2; length <= n; length *= 2)
    for (size_t begin = 0; begin < n; begin += length)
      for (size_t k = 0; k < length / 2; ++k) {
        const auto even = x[begin + k], odd = x[begin + k + length / 2] * roots[k * (n / length)];
        x[begin + k] = even + odd;
        x[begin + k + length / 2] = even - odd;
      }
}

/// sum_n x_n exp(sign 2 pi i k n / N). Other lengths as a convolution of a power of two (Bluestein 1970).
Signal transform(Signal x, int sign) {
  const auto n = static_cast<int64_t>(x.size());
  if (n <= 1) return x;
  if ((n & (n - 1)) == 0) {
    transform_power_of_two(x, sign);
    return x;
  }
  size_t padded = 1;
  while (padded < static_cast<size_t>(2 * n)) padded *= 2;
  Signal chirp(x.size()), a(padded), b(padded);
  for (int64_t k = 0; k < n; ++k) {
    const auto at = static_cast<size_t>(k);
    chirp[at] = root(k * k % (2 * n), 2 * n, sign);
    a[at] = x[at] * chirp[at];
    b[at] = std::conj(chirp[at]);
    if (k > 0) b[padded - at] = b[at];
  }
  transform_power_of_two(a, -1);
  transform_power_of_two(b, -1);
  for (size_t k = 0; k < padded; ++k) a[k] *= b[k];
  transform_power_of_two(a, 1);
  for (size_t k = 0; k < x.size(); ++k) x[k] = a[k] * chirp[k] / static_cast<double>(padded);
  return x;
}

/// Reals and imaginary parts lie side by side in the last axis, of 1 or 2 elements.
void check_signal(const HostContext& node, const Tensor& x) {
  const Shape& shape = x.shape();
  if (shape.rank() < 2 || (shape[shape.rank() - 1] != 1 && shape[shape.rank() - 1] != 2))
    node.fail("wants a signal with one or two numbers in its last axis, got " + to_string(shape));
}

Values run_dft(const HostContext& node) {
  const Tensor& x = node.tensor(0);
  check_signal(node, x);
  const int64_t rank = x.shape().rank();
  int64_t axis = node.opset() < 20 ? node.integer("axis", 1) : node.has(2) ? node.integer_at(2) : -2;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank - 1) node.fail(fmt::format("has the axis {} of a signal of {} axes", axis, rank - 1));
  const bool is_inverse = node.integer("inverse", 0) != 0, is_onesided = node.integer("onesided", 0) != 0;
  const int parts = static_cast<int>(x.shape()[static_cast<int>(rank) - 1]);
  const int64_t size = x.shape()[static_cast<int>(axis)];
  // A one-sided spectrum is of a real signal: of 2 (size - 1) numbers unless an odd length is stated.
  int64_t length = is_inverse && is_onesided ? 2 * (size - 1) : size;
  if (node.has(1)) length = node.integer_at(1);
  if (length < 1 || length > kMostElements) node.fail(fmt::format("has the length {}", length));
  const bool gives_half = is_onesided && !is_inverse, gives_reals = is_onesided && is_inverse;
  const int64_t kept = gives_half ? length / 2 + 1 : length, out_parts = gives_reals ? 1 : 2;
  Shape shape = x.shape();
  shape[static_cast<int>(axis)] = kept;
  shape[static_cast<int>(rank) - 1] = out_parts;
  if (!has_bounded_size(shape) || shape.elements() > kMostElements) node.fail("would give " + to_string(shape));
  Tensor result(x.dtype(), shape);
  int64_t outer = 1, inner = 1;
  for (int each = 0; each < static_cast<int>(rank) - 1; ++each)
    if (each != axis) (each < axis ? outer : inner) *= x.shape()[each];
  for (int64_t row = 0; row < outer * inner; ++row) {
    const int64_t before = row / inner, behind = row % inner;
    Signal signal(static_cast<size_t>(length));
    const auto read = [&](int64_t k) {
      const int64_t at = ((before * size + k) * inner + behind) * parts;
      return std::complex<double>{load_element(x.dtype(), x.data(), at),
                                  parts == 2 ? load_element(x.dtype(), x.data(), at + 1) : 0};
    };
    for (int64_t k = 0; k < std::min(size, gives_reals ? length / 2 + 1 : length); ++k) {
      signal[static_cast<size_t>(k)] = read(k);
      if (gives_reals && k > 0 && 2 * k != length) signal[static_cast<size_t>(length - k)] = std::conj(read(k));
    }
    // What has no partner must be real in the spectrum of a real signal.
    if (gives_reals) {
      signal[0] = signal[0].real();
      if (length % 2 == 0) signal[static_cast<size_t>(length / 2)] = signal[static_cast<size_t>(length / 2)].real();
    }
    const Signal found = transform(std::move(signal), is_inverse ? 1 : -1);
    const double factor = is_inverse ? 1 / static_cast<double>(length) : 1;
    for (int64_t k = 0; k < kept; ++k) {
      const int64_t at = ((before * kept + k) * inner + behind) * out_parts;
      store_element(x.dtype(), result.data(), at, found[static_cast<size_t>(k)].real() * factor);
      if (out_parts == 2)
        store_element(x.dtype(), result.data(), at + 1, found[static_cast<size_t>(k)].imag() * factor);
    }
  }
  return {result};
}

/// [batch, length, 1 or 2] -> [batch, frames, frequencies, 2]
Values run_stft(const HostContext& node) {
  const Tensor& x = node.tensor(0);
  check_signal(node, x);
  if (x.shape().rank() != 3) node.fail("wants a signal [batch,length,1 or 2], got " + to_string(x.shape()));
  const int64_t step = node.integer_at(1), length = x.shape()[1], parts = x.shape()[2];
  const auto window = node.has(2) ? reals_of(node.tensor(2)) : std::vector<double>{};
  const int64_t size = node.has(3) ? node.integer_at(3) : window.empty() ? length : static_cast<int64_t>(window.size());
  if (step < 1 || size < 1 || size > length)
    node.fail(fmt::format("cuts frames of {} at steps of {} from a signal of {}", size, step, length));
  if (!window.empty() && static_cast<int64_t>(window.size()) != size)
    node.fail(fmt::format("has a window of {} numbers for frames of {}", window.size(), size));
  const int64_t frames = (length - size) / step + 1;
  const int64_t kept = node.integer("onesided", 1) != 0 ? size / 2 + 1 : size;
  const Shape shape{x.shape()[0], frames, kept, 2};
  if (!has_bounded_size(shape) || shape.elements() > kMostElements) node.fail("would give " + to_string(shape));
  Tensor result(x.dtype(), shape);
  int64_t at = 0;
  for (int64_t batch = 0; batch < x.shape()[0]; ++batch)
    for (int64_t frame = 0; frame < frames; ++frame) {
      Signal signal(static_cast<size_t>(size));
      for (int64_t k = 0; k < size; ++k) {
        const int64_t from = ((batch * length) + frame * step + k) * parts;
        const double weight = window.empty() ? 1 : window[static_cast<size_t>(k)];
        signal[static_cast<size_t>(k)] = {weight * load_element(x.dtype(), x.data(), from),
                                          parts == 2 ? weight * load_element(x.dtype(), x.data(), from + 1) : 0};
      }
      const Signal found = transform(std::move(signal), -1);
      for (int64_t k = 0; k < kept; ++k) {
        store_element(x.dtype(), result.data(), at++, found[static_cast<size_t>(k)].real());
        store_element(x.dtype(), result.data(), at++, found[static_cast<size_t>(k)].imag());
      }
    }
  return {result};
}

/// A cosine series over the window: sum of (-1)^k c_k cos(2 pi k i / length).
RunOnHost window(std::vector<double> coefficients) {
  return [coefficients = std::move(coefficients)](const HostContext& node) -> Values {
    const int64_t size = node.integer_at(0);
    if (size < 0 || size > kMostElements) node.fail(fmt::format("has {} elements", size));
    const bool periodic = node.integer("periodic", 1) != 0;
    Tensor result(node.dtype_of("output_datatype", DType::f32), Shape{size});
    const double length = static_cast<double>(periodic ? size : size - 1);
    for (int64_t index = 0; index < size; ++index) {
      double value = 0;
      for (size_t order = 0; order < coefficients.size(); ++order)
        value += (order % 2 == 0 ? 1 : -1) * coefficients[order] *
                 std::cos(2 * M_PI * static_cast<double>(order) * static_cast<double>(index) / length);
      store_element(result.dtype(), result.data(), index, value);
    }
    return {result};
  };
}

/// Triangles over the frequencies of a transform, evenly spaced on the mel scale: [length / 2 + 1, bins].
Values run_mel_weight_matrix(const HostContext& node) {
  const int64_t bins = node.integer_at(0), length = node.integer_at(1), rate = node.integer_at(2);
  const double lowest = reals_of(node.tensor(3)).at(0), highest = reals_of(node.tensor(4)).at(0);
  const int64_t frequencies = length / 2 + 1;
  if (bins < 1 || length < 1 || rate < 1 || bins > kMostElements / frequencies)
    node.fail(fmt::format("has {} bins, {} numbers per transform and {} samples per second", bins, length, rate));
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  if (!(lowest > -700 && highest >= lowest) || !std::isfinite(highest))
    node.fail(fmt::format("spans {} to {} hertz", lowest, highest));
  const double step = (mel(highest) - mel(lowest)) / static_cast<double>(bins + 2);
  std::vector<int64_t> edges;
  for (int64_t edge = 0; edge < bins + 2; ++edge) {
    const double hertz = 700 * (std::pow(10, (mel(lowest) + static_cast<double>(edge) * step) / 2595) - 1);
    const double at = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    if (!(at >= 0 && at < static_cast<double>(frequencies)))
      node.fail(fmt::format("has an edge at {:.0f} hertz, beyond half of {} samples per second", hertz, rate));
    edges.push_back(static_cast<int64_t>(at));
  }
  Tensor result(node.dtype_of("output_datatype", DType::f32), Shape{frequencies, bins});
  for (int64_t index = 0; index < result.elements(); ++index) store_element(result.dtype(), result.data(), index, 0);
  for (int64_t bin = 0; bin < bins; ++bin) {
    const auto at = static_cast<size_t>(bin);
    const int64_t low = edges[at], centre = edges[at + 1], high = edges[at + 2];
    const auto store = [&](int64_t row, int64_t part, int64_t whole) {
      store_element(result.dtype(), result.data(), row * bins + bin,
                    whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole));
    };
    for (int64_t row = low; row <= centre; ++row) store(row, row - low, centre - low);
    for (int64_t row = centre; row < high; ++row) store(row, high - row, high - centre);
  }
  return {result};
}

}  // namespace

void add_signal(OperatorTable& table) {
  const std::string family = "signal";
  table.add_on_host(family, "DFT", run_dft);
  table.add_on_host(family, "STFT", run_stft);
  table.add_on_host(family, "MelWeightMatrix", run_mel_weight_matrix);
  table.add_on_host(family, "HannWindow", window({0.5, 0.5}));
  table.add_on_host(family, "HammingWindow", window({25.0 / 46, 21.0 / 46}));
  table.add_on_host(family, "BlackmanWindow", window({0.42, 0.5, 0.08}));
}

}  // namespace weft::onnx
