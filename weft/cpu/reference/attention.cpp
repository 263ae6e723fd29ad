// The causal mask over attention scores, and attention by its definition.
#include <limits>
#include <memory>

#include "weft/cpu/reference/reference.h"
#include "weft/cpu/reference/softmax_weights.h"

namespace weft::reference {
namespace {

Body prepare_causal_mask(const NodeSignature& node) {
  const Shape& shape = node.inputs[0].shape;
  const int64_t rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1];
  const int64_t elements = shape.elements();
  const auto masked = static_cast<float>(node.attributes.real("value"));
  return [=](const KernelArguments& call) {
    for (int64_t i = 0; i < elements; ++i) {
      const int64_t row = i / columns % rows, column = i % columns;
      output(call, 0)[i] = column <= row + (columns - rows) ? input(call, 0)[i] : masked;
    }
  };
}

/// The extents of a fused_attention node, and what a query and a key make of them.
struct Attention {
  int64_t queries, keys, width, value_width, members;
  double scale;
  bool causal, transpose_k, has_mask;
  StridedView mask;

  explicit Attention(const NodeSignature& node)
      : scale(node.attributes.real("scale")),
        causal(node.attributes.boolean("causal")),
        transpose_k(node.attributes.boolean("transpose_k")),
        has_mask(node.inputs.size() > 3),
        mask(mask_view(node)) {
    const Shape &q = node.inputs[0].shape, &v = node.inputs[2].shape;
    queries = q[q.rank() - 2], width = q[q.rank() - 1];
    keys = v[v.rank() - 2], value_width = v[v.rank() - 1];
    members = Shape(std::vector<int64_t>(q.begin(), q.end() - 2)).elements();
  }

  static StridedView mask_view(const NodeSignature& node) {
    const Shape &q = node.inputs[0].shape, &v = node.inputs[2].shape;
    std::vector<int64_t> scores(q.begin(), q.end() - 1);
    scores.push_back(v[v.rank() - 2]);
    return broadcast_view(node.inputs.size() > 3 ? node.inputs[3].shape : Shape(scores), Shape(scores));
  }

  double score(const KernelArguments& call, int64_t member, int64_t query, int64_t key) const {
    if (causal && key > query + (keys - queries)) return -std::numeric_limits<double>::infinity();
    const float* q = input(call, 0) + (member * queries + query) * width;
    const float* k = input(call, 1) + member * keys * width;
    double sum = 0;
    for (int64_t at = 0; at < width; ++at)
      sum += static_cast<double>(q[at]) * static_cast<double>(transpose_k ? k[key * width + at] : k[at * keys + key]);
    sum *= scale;
    if (has_mask) sum += static_cast<double>(input(call, 3)[mask((member * queries + query) * keys + key)]);
    return sum;
  }
};

Body prepare_fused_attention(const NodeSignature& node) {
  const Attention attention(node);
  const auto scores = std::make_shared<std::vector<double>>(static_cast<size_t>(attention.keys));
  return [attention, scores](const KernelArguments& call) {
    std::vector<double>& weights = *scores;
    for (int64_t row = 0; row < attention.members * attention.queries; ++row) {
      const int64_t member = row / attention.queries, query = row % attention.queries;
      for (int64_t key = 0; key < attention.keys; ++key)
        weights[static_cast<size_t>(key)] = attention.score(call, member, query, key);
      const double sum = make_softmax_weights(weights);
      for (int64_t at = 0; at < attention.value_width; ++at) {
        double value = 0;
        for (int64_t key = 0; key < attention.keys; ++key)
          value += weights[static_cast<size_t>(key)] *
                   static_cast<double>(input(call, 2)[(member * attention.keys + key) * attention.value_width + at]);
        output(call, 0)[row * attention.value_width + at] = static_cast<float>(value / sum);
      }
    }
  };
}

}  // namespace

void add_attention(KernelTable& table) {
  add_plain(table, "causal_mask", prepare_causal_mask);
  add_plain(table, "fused_attention", prepare_fused_attention);
}

}  // namespace weft::reference
