// What makes gradients smaller: orthogonal columns, the largest elements, signs.
#include "weft/cpu/reference/compression.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "weft/base/rng.h"
#include "weft/cpu/reference/reference.h"

namespace weft::reference {
namespace {

constexpr double kDependent = 1e-5;  // of a column's length, below which nothing of it is left but rounding

class Columns {
 public:
  Columns(float* data, int64_t rows, int64_t columns) : data_(data), rows_(rows), columns_(columns) {}

  double dot(int64_t a, int64_t b) const {
    double sum = 0;
    for (int64_t row = 0; row < rows_; ++row)
      sum += static_cast<double>(data_[row * columns_ + a]) * static_cast<double>(data_[row * columns_ + b]);
    return sum;
  }
  void subtract_earlier(int64_t column) {
    for (int64_t earlier = 0; earlier < column; ++earlier) {
      const auto share = static_cast<float>(dot(earlier, column));
      for (int64_t row = 0; row < rows_; ++row)
        data_[row * columns_ + column] -= share * data_[row * columns_ + earlier];
    }
  }
  void scale(int64_t column, double factor) {
    for (int64_t row = 0; row < rows_; ++row) data_[row * columns_ + column] *= static_cast<float>(factor);
  }
  void fill(int64_t column, uint64_t key) {
    for (int64_t row = 0; row < rows_; ++row)
      data_[row * columns_ + column] =
          static_cast<float>(static_cast<double>(mix(key, static_cast<uint64_t>(row)) >> 40) / (1 << 24) - 0.5);
  }

 private:
  float* data_;
  const int64_t rows_, columns_;
};

Body prepare_orthogonalise(const NodeSignature& node) {
  const int64_t rows = node.inputs[0].shape[0], columns = node.inputs[0].shape[1];
  return [=](const KernelArguments& call) {
    float* y = output(call, 0);
    std::copy(input(call, 0), input(call, 0) + rows * columns, y);
    Columns matrix(y, rows, columns);
    for (int64_t column = 0; column < columns; ++column) {
      double before = std::sqrt(matrix.dot(column, column));
      matrix.subtract_earlier(column);
      double length = std::sqrt(matrix.dot(column, column));
      // NaN is not replaced: it must reach the loss. A draw may depend on earlier columns too.
      for (uint64_t draw = 1; length <= kDependent * before && draw <= 8; ++draw) {
        matrix.fill(column, mix(draw, static_cast<uint64_t>(column)));
        before = std::sqrt(matrix.dot(column, column));
        matrix.subtract_earlier(column);
        length = std::sqrt(matrix.dot(column, column));
      }
      matrix.scale(column, 1 / length);
      matrix.subtract_earlier(column);  // what rounding has left of them
      matrix.scale(column, 1 / std::sqrt(matrix.dot(column, column)));
    }
  };
}

/// NaN counts as the largest.
uint32_t magnitude(float x) { return __builtin_bit_cast(uint32_t, x) & 0x7fffffffu; }

Body prepare_top_k_select(const NodeSignature& node) {
  const int64_t elements = node.inputs[0].elements(), k = node.attributes.integer("k");
  return [=](const KernelArguments& call) {
    const float* x = input(call, 0);
    std::vector<int32_t> places(static_cast<size_t>(elements));
    std::iota(places.begin(), places.end(), 0);
    std::stable_sort(places.begin(), places.end(),
                     [&](int32_t a, int32_t b) { return magnitude(x[a]) > magnitude(x[b]); });
    places.resize(static_cast<size_t>(k));
    std::sort(places.begin(), places.end());
    float* rest = output(call, 2);
    std::copy(x, x + elements, rest);
    for (size_t i = 0; i < places.size(); ++i) {
      output(call, 0)[i] = x[places[i]];
      output<int32_t>(call, 1)[i] = places[i];
      rest[places[i]] = 0;
    }
  };
}

Body prepare_pack_signs(const NodeSignature& node) {
  const int64_t elements = node.inputs[0].elements(), block = node.attributes.integer("block");
  return [=](const KernelArguments& call) {
    const float* x = input(call, 0);
    auto* signs = output<uint32_t>(call, 0);
    std::fill(signs, signs + node.outputs[0].elements(), 0u);
    for (int64_t begin = 0; begin < elements; begin += block) {
      const int64_t end = std::min(begin + block, elements);
      double sums[2] = {0, 0};
      int64_t counts[2] = {0, 0};
      for (int64_t i = begin; i < end; ++i) {
        const int sign = std::signbit(x[i]) ? 1 : 0;
        signs[i / 32] |= static_cast<uint32_t>(sign) << (i % 32);
        sums[sign] += static_cast<double>(x[i]);
        ++counts[sign];
      }
      float* means = output(call, 1) + begin / block * 2;
      for (const int sign : {0, 1})
        means[sign] = counts[sign] > 0 ? static_cast<float>(sums[sign] / static_cast<double>(counts[sign])) : 0;
      for (int64_t i = begin; i < end; ++i) output(call, 2)[i] = x[i] - means[std::signbit(x[i]) ? 1 : 0];
    }
  };
}

Body prepare_unpack_signs(const NodeSignature& node) {
  const int64_t elements = node.outputs[0].elements(), block = node.attributes.integer("block");
  const int64_t ranks = node.attributes.integer("ranks");
  const int64_t words = node.inputs[0].elements() / ranks, blocks = node.inputs[1].elements() / 2 / ranks;
  return [=](const KernelArguments& call) {
    for (int64_t i = 0; i < elements; ++i) {
      double sum = 0;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const uint32_t sign = input<uint32_t>(call, 0)[rank * words + i / 32] >> (i % 32) & 1u;
        sum += static_cast<double>(input(call, 1)[(rank * blocks + i / block) * 2 + sign]);
      }
      output(call, 0)[i] = static_cast<float>(sum / static_cast<double>(ranks));
    }
  };
}

}  // namespace

void add_compression(KernelTable& table) {
  add_plain(table, "orthogonalise", prepare_orthogonalise);
  add_plain(table, "top_k_select", prepare_top_k_select);
  add_plain(table, "pack_signs", prepare_pack_signs);
  add_plain(table, "unpack_signs", prepare_unpack_signs);
}

}  // namespace weft::reference
