// Layer normalisation over the last axis (Ba, Kiros & Hinton 2016) and its gradient.
#include <cmath>

#include "weft/cpu/reference/reference.h"

namespace weft::reference {
namespace {

struct RowGrid {
  int64_t rows, width;
  explicit RowGrid(const Shape& shape) : rows(0), width(shape[shape.rank() - 1]) {
    if (width > 0) rows = shape.elements() / width;
  }
};

Body prepare_layer_norm(const NodeSignature& node) {
  const RowGrid grid(node.inputs[0].shape);
  const double epsilon = node.attributes.real("epsilon");
  return [=](const KernelArguments& call) {
    const float *scale = input(call, 1), *shift = input(call, 2);
    for (int64_t row = 0; row < grid.rows; ++row) {
      const float* x = input(call, 0) + row * grid.width;
      float* y = output(call, 0) + row * grid.width;
      double sum = 0, squares = 0;
      for (int64_t d = 0; d < grid.width; ++d) sum += static_cast<double>(x[d]);
      const double mean = sum / static_cast<double>(grid.width);
      for (int64_t d = 0; d < grid.width; ++d) squares += std::pow(static_cast<double>(x[d]) - mean, 2);
      const double inverse = 1 / std::sqrt(squares / static_cast<double>(grid.width) + epsilon);
      for (int64_t d = 0; d < grid.width; ++d)
        y[d] = static_cast<float>((static_cast<double>(x[d]) - mean) * inverse * static_cast<double>(scale[d]) +
                                  static_cast<double>(shift[d]));
      output(call, 1)[row] = static_cast<float>(mean);
      output(call, 2)[row] = static_cast<float>(inverse);
    }
  };
}

Body prepare_layer_norm_backward(const NodeSignature& node) {
  const RowGrid grid(node.inputs[0].shape);
  return [=](const KernelArguments& call) {
    const float *dy = input(call, 0), *x = input(call, 1), *scale = input(call, 2);
    const float *means = input(call, 3), *inverses = input(call, 4);
    float *dx = output(call, 0), *dscale = output(call, 1), *dshift = output(call, 2);
    const auto normalised = [&](int64_t row, int64_t d) {
      return (static_cast<double>(x[row * grid.width + d]) - static_cast<double>(means[row])) *
             static_cast<double>(inverses[row]);
    };
    // The sums over rows come first: dx may overwrite dy.
    for (int64_t d = 0; d < grid.width; ++d) {
      double sum = 0, product = 0;
      for (int64_t row = 0; row < grid.rows; ++row) {
        const double gradient = static_cast<double>(dy[row * grid.width + d]);
        sum += gradient;
        product += gradient * normalised(row, d);
      }
      dscale[d] = static_cast<float>(product);
      dshift[d] = static_cast<float>(sum);
    }
    for (int64_t row = 0; row < grid.rows; ++row) {
      const auto scaled = [&](int64_t d) {
        return static_cast<double>(dy[row * grid.width + d]) * static_cast<double>(scale[d]);
      };
      double sum = 0, product = 0;
      for (int64_t d = 0; d < grid.width; ++d) {
        sum += scaled(d);
        product += scaled(d) * normalised(row, d);
      }
      const double width = static_cast<double>(grid.width);
      for (int64_t d = 0; d < grid.width; ++d)
        dx[row * grid.width + d] = static_cast<float>(static_cast<double>(inverses[row]) *
                                                      (scaled(d) - sum / width - normalised(row, d) * product / width));
    }
  };
}

}  // namespace

void add_layer_norm(KernelTable& table) {
  add_plain(table, "layer_norm", prepare_layer_norm);
  add_plain(table, "layer_norm_backward", prepare_layer_norm_backward);
}

}  // namespace weft::reference
