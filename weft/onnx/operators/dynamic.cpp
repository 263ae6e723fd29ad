// What depends on data in its size, and what the host computes as quickly as a graph would be made of it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>

#include "weft/base/rng.h"
#include "weft/onnx/operators/host_tensors.h"
#include "weft/onnx/operators/operators.h"
#include "weft/tensor/element.h"

namespace weft::onnx {

namespace {

using Values = std::vector<HostValue>;

int axis_of(const HostContext& node, int64_t axis, int64_t rank) {
  const int64_t resolved = axis < 0 ? axis + rank : axis;
  if (resolved < 0 || resolved >= rank) node.fail(fmt::format("has the axis {} of {}", axis, rank));
  return static_cast<int>(resolved);
}

/// The indices of what is not 0, a column per element: [rank, count].
Values run_non_zero(const HostContext& node) {
  const Tensor& tensor = node.tensor(0);
  std::vector<int64_t> found;
  for (int64_t index = 0; index < tensor.elements(); ++index)
    if (load_element(tensor.dtype(), tensor.data(), index) != 0) found.push_back(index);
  const int rank = tensor.shape().rank();
  const auto count = static_cast<int64_t>(found.size());
  Tensor result(DType::i64, Shape{rank, count});
  const auto strides = row_major_strides(tensor.shape());
  for (int64_t column = 0; column < count; ++column)
    for (int axis = 0; axis < rank; ++axis)
      result.data_as<int64_t>()[axis * count + column] =
          found[static_cast<size_t>(column)] / strides[static_cast<size_t>(axis)] % tensor.shape()[axis];
  return {result};
}

Tensor flattened(const Tensor& tensor) { return tensor.reinterpreted({tensor.dtype(), Shape{tensor.elements()}, {}}); }

Values run_compress(const HostContext& node) {
  const bool is_flat = !node.has_attribute("axis");
  const Tensor tensor = is_flat ? flattened(node.tensor(0)) : node.tensor(0);
  const int axis = is_flat ? 0 : axis_of(node, node.integer("axis"), tensor.shape().rank());
  const auto keeps = node.integers_at(1);
  std::vector<Tensor> parts = {range_of(tensor, axis, 0, 0)};
  for (int64_t index = 0; index < std::min<int64_t>(tensor.shape()[axis], static_cast<int64_t>(keeps.size())); ++index)
    if (keeps[static_cast<size_t>(index)] != 0) parts.push_back(range_of(tensor, axis, index, index + 1));
  return {joined(node, parts, axis)};
}

Values run_unique(const HostContext& node) {
  const bool is_flat = !node.has_attribute("axis");
  const Tensor tensor = is_flat ? flattened(node.tensor(0)) : node.tensor(0);
  const int axis = is_flat ? 0 : axis_of(node, node.integer("axis"), tensor.shape().rank());
  std::vector<std::vector<double>> layers;
  std::vector<Tensor> parts;
  for (int64_t index = 0; index < tensor.shape()[axis]; ++index) {
    parts.push_back(range_of(tensor, axis, index, index + 1));
    layers.push_back(reals_of(parts.back()));
  }
  std::vector<size_t> order(layers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return layers[a] < layers[b]; });
  std::vector<std::vector<size_t>> groups;  // of equal layers, by their order
  for (const size_t index : order) {
    if (groups.empty() || layers[groups.back().front()] != layers[index]) groups.emplace_back();
    groups.back().push_back(index);
  }
  if (node.integer("sorted", 1) == 0)
    std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.front() < b.front(); });
  std::vector<Tensor> kept = {range_of(tensor, axis, 0, 0)};
  std::vector<int64_t> first, inverse(layers.size()), counts;
  for (size_t group = 0; group < groups.size(); ++group) {
    kept.push_back(parts[groups[group].front()]);
    first.push_back(static_cast<int64_t>(groups[group].front()));
    counts.push_back(static_cast<int64_t>(groups[group].size()));
    for (const size_t index : groups[group]) inverse[index] = static_cast<int64_t>(group);
  }
  return {joined(node, kept, axis), tensor_of(first), tensor_of(inverse), tensor_of(counts)};
}

Values run_reverse_sequence(const HostContext& node) {
  const Tensor& tensor = node.tensor(0);
  const int time = static_cast<int>(node.integer("time_axis", 0)),
            batch = static_cast<int>(node.integer("batch_axis", 1));
  if (tensor.shape().rank() < 2 || time + batch != 1) node.fail("wants time and batch as its first two axes");
  const auto lengths = node.integers_at(1);
  const int64_t steps = tensor.shape()[time], samples = tensor.shape()[batch];
  if (static_cast<int64_t>(lengths.size()) != samples) node.fail("wants a length per sample");
  Tensor result(tensor.type());
  const int64_t inner = tensor.elements() / std::max<int64_t>(1, steps * samples);
  const auto place = [&](int64_t step, int64_t sample) {
    return (time == 0 ? step * samples + sample : sample * steps + step) * inner;
  };
  for (int64_t sample = 0; sample < samples; ++sample)
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t length = lengths[static_cast<size_t>(sample)];
      if (length < 0 || length > steps) node.fail(fmt::format("has the length {} of {} steps", length, steps));
      const int64_t from = step < length ? length - 1 - step : step;
      for (int64_t index = 0; index < inner; ++index)
        copy_element(tensor.dtype(), tensor.data(), place(from, sample) + index, result.data(),
                     place(step, sample) + index);
    }
  return {result};
}

/// The same bits as another type of as many.
Values run_bit_cast(const HostContext& node) {
  const Tensor& tensor = node.tensor(0);
  const DType dtype = node.dtype_of("to", DType::f32);
  if (bits_of(dtype) != bits_of(tensor.dtype()))
    node.fail(fmt::format("casts the bits of {} to {}", name_of(tensor.dtype()), name_of(dtype)));
  return {tensor.reinterpreted({dtype, tensor.shape(), {}})};
}

Values run_cumulative_product(const HostContext& node) {
  const Tensor& tensor = node.tensor(0);
  const int axis = axis_of(node, node.integer_at(1), tensor.shape().rank());
  const bool reverse = node.integer("reverse", 0) != 0, exclusive = node.integer("exclusive", 0) != 0;
  Tensor result(tensor.type());
  const int64_t size = tensor.shape()[axis], inner = row_major_strides(tensor.shape())[static_cast<size_t>(axis)];
  const int64_t rows = tensor.elements() / std::max<int64_t>(1, size);
  for (int64_t row = 0; row < rows; ++row)
    visit_number(tensor.dtype(), [&](auto number) {
      using Number = decltype(number);
      auto product = static_cast<Number>(1);
      const int64_t begin = row / inner * size * inner + row % inner;
      for (int64_t turn = 0; turn < size; ++turn) {
        const int64_t at = begin + (reverse ? size - 1 - turn : turn) * inner;
        const auto value = load_as<Number>(tensor.dtype(), tensor.data(), at);
        if (exclusive) store_number(tensor.dtype(), result.data(), at, product);
        product = static_cast<Number>(product * value);
        if (!exclusive) store_number(tensor.dtype(), result.data(), at, product);
      }
    });
  return {result};
}

/// By Gauss's elimination with the largest pivots.
double determinant(std::vector<double> matrix, int64_t size) {
  double result = 1;
  const auto at = [&](int64_t row, int64_t column) -> double& {
    return matrix[static_cast<size_t>(row * size + column)];
  };
  for (int64_t column = 0; column < size; ++column) {
    int64_t pivot = column;
    for (int64_t row = column + 1; row < size; ++row)
      if (std::abs(at(row, column)) > std::abs(at(pivot, column))) pivot = row;
    if (at(pivot, column) == 0) return 0;
    if (pivot != column) {
      result = -result;
      for (int64_t each = 0; each < size; ++each) std::swap(at(pivot, each), at(column, each));
    }
    result *= at(column, column);
    for (int64_t row = column + 1; row < size; ++row) {
      const double factor = at(row, column) / at(column, column);
      for (int64_t each = column; each < size; ++each) at(row, each) -= factor * at(column, each);
    }
  }
  return result;
}

Values run_determinant(const HostContext& node) {
  const Tensor& tensor = node.tensor(0);
  const int rank = tensor.shape().rank();
  if (rank < 2 || tensor.shape()[rank - 1] != tensor.shape()[rank - 2]) node.fail("wants square matrices");
  const int64_t size = tensor.shape()[rank - 1];
  Tensor result(tensor.dtype(),
                Shape(std::vector<int64_t>(tensor.shape().dims().begin(), tensor.shape().dims().end() - 2)));
  const auto numbers = reals_of(tensor);
  for (int64_t index = 0; index < result.elements(); ++index) {
    const auto begin = numbers.begin() + index * size * size;
    store_element(tensor.dtype(), result.data(), index, determinant({begin, begin + size * size}, size));
  }
  return {result};
}

struct Box {
  double y1, x1, y2, x2;
  double area() const { return (y2 - y1) * (x2 - x1); }
};

double overlap(const Box& a, const Box& b) {
  const double height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1),
               width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (height <= 0 || width <= 0) return 0;
  const double shared = height * width;
  return shared / (a.area() + b.area() - shared);
}

Values run_non_max_suppression(const HostContext& node) {
  const Tensor &boxes = node.tensor(0), &scores = node.tensor(1);
  if (boxes.shape().rank() != 3 || boxes.shape()[2] != 4 || scores.shape().rank() != 3 ||
      scores.shape()[2] != boxes.shape()[1] || scores.shape()[0] != boxes.shape()[0])
    node.fail(fmt::format("wants boxes [N,S,4] and scores [N,C,S], got {} and {}", to_string(boxes.shape()),
                          to_string(scores.shape())));
  const int64_t batches = boxes.shape()[0], count = boxes.shape()[1], classes = scores.shape()[1];
  const int64_t most = node.has(2) ? node.integer_at(2) : 0;
  // An empty tensor is one that is not given.
  const auto threshold = [&](int input) -> std::optional<double> {
    const auto numbers = node.has(input) ? reals_of(node.tensor(input)) : std::vector<double>{};
    return numbers.empty() ? std::nullopt : std::optional(numbers.front());
  };
  const double most_overlap = threshold(3).value_or(0);
  const bool has_least = threshold(4).has_value();
  const double least_score = threshold(4).value_or(0);
  const bool is_centred = node.integer("center_point_box", 0) != 0;
  const auto coordinates = reals_of(boxes), values = reals_of(scores);
  const auto box_at = [&](int64_t batch, int64_t index) {
    const double* c = &coordinates[static_cast<size_t>((batch * count + index) * 4)];
    if (is_centred) return Box{c[1] - c[3] / 2, c[0] - c[2] / 2, c[1] + c[3] / 2, c[0] + c[2] / 2};
    return Box{std::min(c[0], c[2]), std::min(c[1], c[3]), std::max(c[0], c[2]), std::max(c[1], c[3])};
  };
  std::vector<int64_t> found;
  for (int64_t batch = 0; batch < batches; ++batch)
    for (int64_t each = 0; each < classes; ++each) {
      const double* score = &values[static_cast<size_t>((batch * classes + each) * count)];
      std::vector<int64_t> order, chosen;
      for (int64_t index = 0; index < count; ++index)
        if (!has_least || score[index] > least_score) order.push_back(index);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return score[a] > score[b]; });
      for (const int64_t index : order) {
        if (static_cast<int64_t>(chosen.size()) >= most) break;
        const bool is_hidden = std::any_of(chosen.begin(), chosen.end(), [&](int64_t other) {
          return overlap(box_at(batch, index), box_at(batch, other)) > most_overlap;
        });
        if (is_hidden) continue;
        chosen.push_back(index);
        found.insert(found.end(), {batch, each, index});
      }
    }
  return {tensor_of(found).reinterpreted({DType::i64, Shape{static_cast<int64_t>(found.size()) / 3, 3}, {}})};
}

/// With a seed the same numbers at each run, without one others.
uint64_t seed_of(const HostContext& node) {
  if (!node.has_attribute("seed")) return std::random_device{}();
  const double seed = node.real("seed", 0);
  uint64_t bits = 0;
  std::memcpy(&bits, &seed, sizeof bits);
  return bits;
}

Values drawn(const HostContext& node, const Shape& shape, DType dtype, bool is_normal) {
  if (!has_bounded_size(shape)) node.fail("has the shape " + to_string(shape));
  Tensor result(dtype, shape);
  RandomStream stream(mix(seed_of(node), 0));
  for (int64_t index = 0; index < result.elements(); ++index) {
    double value = stream.uniform();
    if (is_normal) {
      const double radius = std::sqrt(-2 * std::log(1 - value));
      value = node.real("mean", 0) + node.real("scale", 1) * radius * std::cos(2 * M_PI * stream.uniform());
    } else {
      const double low = node.real("low", 0);
      value = low + (node.real("high", 1) - low) * value;
    }
    store_element(dtype, result.data(), index, value);
  }
  return {result};
}

Values run_bernoulli(const HostContext& node) {
  const Tensor& chances = node.tensor(0);
  Tensor result(node.dtype_of("dtype", chances.dtype()), chances.shape());
  RandomStream stream(mix(seed_of(node), 0));
  for (int64_t index = 0; index < chances.elements(); ++index)
    store_element(result.dtype(), result.data(), index,
                  stream.uniform() < load_element(chances.dtype(), chances.data(), index) ? 1 : 0);
  return {result};
}

/// Samples of classes whose unnormalised log probabilities are the rows.
Values run_multinomial(const HostContext& node) {
  const Tensor& logits = node.tensor(0);
  if (logits.shape().rank() != 2) node.fail("wants a row of log probabilities per sample");
  const int64_t rows = logits.shape()[0], classes = logits.shape()[1], count = node.integer("sample_size", 1);
  Tensor result(node.dtype_of("dtype", DType::i32), Shape{rows, count});
  if (!has_bounded_size(result.shape())) node.fail("draws too many samples");
  RandomStream stream(mix(seed_of(node), 0));
  const auto numbers = reals_of(logits);
  for (int64_t row = 0; row < rows; ++row) {
    const auto begin = numbers.begin() + row * classes;
    const double largest = *std::max_element(begin, begin + classes);
    std::vector<double> sums;
    double sum = 0;
    for (int64_t each = 0; each < classes; ++each) sums.push_back(sum += std::exp(*(begin + each) - largest));
    for (int64_t index = 0; index < count; ++index) {
      const auto found = std::upper_bound(sums.begin(), sums.end(), stream.uniform() * sum);
      store_number(result.dtype(), result.data(), row * count + index,
                   std::min<int64_t>(classes - 1, found - sums.begin()));
    }
  }
  return {result};
}

}  // namespace

void add_dynamic(OperatorTable& table) {
  table.add_on_host("indexing", "NonZero", run_non_zero);
  table.add_on_host("indexing", "Compress", run_compress);
  table.add_on_host("indexing", "Unique", run_unique);
  table.add_on_host("indexing", "ReverseSequence", run_reverse_sequence);
  table.add_on_host("indexing", "CumProd", run_cumulative_product);
  table.add_on_host("shape", "BitCast", run_bit_cast);
  table.add_on_host("matrix product", "Det", run_determinant);
  table.add_on_host("image", "NonMaxSuppression", run_non_max_suppression);
  const auto shape_of = [](const HostContext& node) { return Shape(node.integers("shape")); };
  for (const bool is_normal : {false, true}) {
    const std::string name = is_normal ? "RandomNormal" : "RandomUniform";
    table.add_random("random", name, {}, [=](const HostContext& node) {
      return drawn(node, shape_of(node), node.dtype_of("dtype", DType::f32), is_normal);
    });
    table.add_random("random", name + "Like", {}, [=](const HostContext& node) {
      return drawn(node, node.tensor(0).shape(), node.dtype_of("dtype", node.tensor(0).dtype()), is_normal);
    });
  }
  table.add_random("random", "Bernoulli", {}, run_bernoulli);
  table.add_random("random", "Multinomial", {}, run_multinomial);
}

}  // namespace weft::onnx
