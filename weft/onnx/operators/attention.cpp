// Attention as one operator, and what goes with it: rotary embeddings and the cache of keys and values.
#include <cmath>
#include <limits>

#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {

namespace {

ValueId as_reals(Graph& graph, ValueId x) {
  return graph.type(x).dtype == DType::f32 ? x : ops::cast(graph, x, DType::f32);
}
ValueId as_type(Graph& graph, ValueId x, DType dtype) {
  return graph.type(x).dtype == dtype ? x : ops::cast(graph, x, dtype);
}

/// [B,S,heads D] -> [B,heads,S,D]; what has four axes already stays.
ValueId with_heads(NodeContext& node, ValueId x, int64_t heads) {
  Graph& graph = node.graph();
  const Shape shape = graph.shape(x);
  if (shape.rank() == 4) return x;
  if (shape.rank() != 3 || heads < 1 || shape[2] % heads != 0)
    node.fail(fmt::format("cannot cut {} into {} heads", to_string(shape), heads));
  const ValueId apart = ops::reshape(graph, x, {shape[0], shape[1], heads, shape[2] / heads});
  return ops::transpose(graph, apart, {0, 2, 1, 3});
}

/// Heads of keys and values serve several heads of queries each.
ValueId repeated_heads(NodeContext& node, ValueId x, int64_t heads) {
  Graph& graph = node.graph();
  const Shape shape = graph.shape(x);
  if (shape[1] == heads) return x;
  if (shape[1] < 1 || heads % shape[1] != 0) node.fail("wants a multiple of the heads of its keys as heads of queries");
  const int64_t times = heads / shape[1];
  const ValueId wide =
      ops::broadcast_to(graph, unsqueeze(graph, x, {2}), Shape{shape[0], shape[1], times, shape[2], shape[3]});
  return ops::reshape(graph, wide, {shape[0], heads, shape[2], shape[3]});
}

/// Column or row numbers of the scores, as i64 [1,1,1,T] or [1,1,S,1].
ValueId numbers(Graph& graph, int64_t count, bool is_row) {
  const ValueId all = ops::iota(graph, DType::i64, count);
  return ops::reshape(graph, all, is_row ? std::vector<int64_t>{1, 1, count, 1} : std::vector<int64_t>{1, 1, 1, count});
}

/// Which keys each query sees by position; invalid where it sees all.
ValueId seen_by_position(NodeContext& node, int64_t queries, int64_t keys, int64_t past) {
  Graph& graph = node.graph();
  const bool is_causal = node.integer("is_causal", 0) != 0;
  const int64_t left = node.integer("left_window_size", -1), right = node.integer("right_window_size", -1);
  const bool has_lengths = node.has(6);
  ValueId seen{};
  const auto both = [&](ValueId more) { seen = seen.valid() ? ops::logical_and(graph, seen, more) : more; };
  const ValueId columns = numbers(graph, keys, false);
  ValueId lengths{};
  if (has_lengths) {
    lengths = as_type(graph, node.value(6), DType::i64);
    lengths = ops::reshape(graph, lengths, {graph.shape(lengths).elements(), 1, 1, 1});
    both(as_boolean(graph, ops::less(graph, columns, lengths)));
  }
  if (!is_causal && left < 0 && right < 0) return seen;
  ValueId position = numbers(graph, queries, true);
  if (has_lengths && !node.has(4)) {
    const ValueId queries_value = ops::constant(graph, DType::i64, Shape{}, queries);
    position = ops::add(graph, position, ops::subtract(graph, lengths, queries_value));
  } else if (past != 0) {
    position = ops::add(graph, position, ops::constant(graph, DType::i64, Shape{}, past));
  }
  const auto shifted = [&](int64_t by) {
    return ops::add(graph, position, ops::constant(graph, DType::i64, Shape{}, by));
  };
  if (is_causal) both(as_boolean(graph, ops::less_equal(graph, columns, position)));
  if (right >= 0) both(as_boolean(graph, ops::less_equal(graph, columns, shifted(right))));
  if (left >= 0) both(as_boolean(graph, ops::greater_equal(graph, columns, shifted(-left))));
  return seen;
}

/// The mask with as many columns as there are keys: what it does not name is not seen.
ValueId whole_mask(NodeContext& node, int64_t keys) {
  Graph& graph = node.graph();
  ValueId mask = node.value(3);
  const int rank = graph.shape(mask).rank();
  if (rank < 1) node.fail("wants a mask of at least one axis");
  const int64_t missing = keys - graph.shape(mask)[rank - 1];
  if (missing <= 0 || graph.shape(mask)[rank - 1] == 1) return mask;
  std::vector<int64_t> low(static_cast<size_t>(rank), 0), high = low;
  high.back() = missing;
  const bool is_boolean = graph.type(mask).dtype == DType::boolean;
  if (is_boolean) return graph.add("pad", {mask}, {{"low", low}, {"high", high}, {"value", int64_t{0}}});
  const double nothing = -std::numeric_limits<double>::infinity();
  return graph.add("pad", {mask}, {{"low", low}, {"high", high}, {"value", nothing}});
}

std::vector<ValueId> convert_attention(NodeContext& node) {
  Graph& graph = node.graph();
  const DType dtype = node.dtype(0);
  for (int input = 0; input < 3; ++input)
    if (node.rank(input) != 3 && node.rank(input) != 4)
      node.fail(fmt::format("wants operands of three or four axes, got {}", to_string(node.shape(input))));
  for (int input = 4; input < 6; ++input)
    if (node.has(input) && node.rank(input) != 4)
      node.fail(fmt::format("wants earlier keys and values of four axes, got {}", to_string(node.shape(input))));
  const bool is_flat = node.rank(0) == 3;
  const int64_t query_heads = is_flat ? node.integer("q_num_heads") : node.shape(0)[1];
  const int64_t key_heads = node.rank(1) == 3 ? node.integer("kv_num_heads") : node.shape(1)[1];
  const ValueId q = with_heads(node, node.value(0), query_heads);
  ValueId k = with_heads(node, node.value(1), key_heads), v = with_heads(node, node.value(2), key_heads);
  int64_t past = 0;
  if (node.has(4) && node.has(5)) {
    past = node.shape(4)[2];
    k = ops::concat(graph, {node.value(4), k}, 2);
    v = ops::concat(graph, {node.value(5), v}, 2);
  }
  const int64_t queries = graph.shape(q)[2], keys = graph.shape(k)[2];
  const double usual = 1 / std::sqrt(static_cast<double>(graph.shape(q)[3]));
  const double scale = node.real("scale", 0) == 0 ? usual : node.real("scale", 0);
  const ValueId wide_k = repeated_heads(node, as_reals(graph, k), query_heads);
  const ValueId wide_v = repeated_heads(node, as_reals(graph, v), query_heads);
  const ValueId raw = ops::multiply_scalar(graph, ops::matmul(graph, as_reals(graph, q), wide_k, false, true), scale);

  const double cap = node.real("softcap", 0);
  const auto capped = [&](ValueId x) {
    if (cap == 0) return x;
    return ops::multiply_scalar(graph, ops::tanh(graph, ops::multiply_scalar(graph, x, 1 / cap)), cap);
  };
  ValueId seen = seen_by_position(node, queries, keys, past), bias{};
  if (node.has(3)) {
    const ValueId mask = whole_mask(node, keys);
    if (graph.type(mask).dtype == DType::boolean)
      seen = seen.valid() ? ops::logical_and(graph, seen, mask) : mask;
    else
      bias = as_reals(graph, mask);
  }
  const ValueId nothing = ops::constant(graph, Shape{}, -std::numeric_limits<double>::infinity());
  const auto masked = [&](ValueId x) {
    if (bias.valid()) x = ops::add(graph, x, bias);
    return seen.valid() ? ops::where(graph, seen, x, nothing) : x;
  };
  const ValueId first = capped(raw), scores = masked(first);
  ValueId shares = ops::softmax(graph, scores, -1);
  if (seen.valid() || bias.valid()) {
    // A query that sees no key gets zeros.
    const ValueId largest = ops::reduce_max(graph, scores, {3}, true);
    const ValueId is_blind = as_boolean(graph, ops::equal(graph, largest, nothing));
    shares = ops::where(graph, is_blind, ops::constant(graph, Shape{}, 0), shares);
  }
  ValueId y = ops::matmul(graph, shares, wide_v);
  if (is_flat) {
    const Shape shape = graph.shape(y);
    y = ops::reshape(graph, ops::transpose(graph, y, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
  }
  const int64_t mode = node.integer("qk_matmul_output_mode", 0);
  const ValueId shown = mode == 0 ? raw : mode == 1 ? first : mode == 2 ? scores : shares;
  return {as_type(graph, y, dtype), k, v, as_type(graph, shown, dtype)};
}

std::vector<ValueId> convert_rotary(NodeContext& node) {
  Graph& graph = node.graph();
  const DType dtype = node.dtype(0);
  if (node.rank(0) != 3 && node.rank(0) != 4)
    node.fail(fmt::format("wants an operand of three or four axes, got {}", to_string(node.shape(0))));
  const bool is_flat = node.rank(0) == 3;
  ValueId x = as_reals(graph, node.value(0));
  // [B,S,heads,D]
  if (is_flat) {
    const int64_t heads = node.integer("num_heads", 0);
    const Shape shape = graph.shape(x);
    if (heads < 1 || shape[2] % heads != 0) node.fail("wants num_heads for an operand of three axes");
    x = ops::reshape(graph, x, {shape[0], shape[1], heads, shape[2] / heads});
  } else {
    x = ops::transpose(graph, x, {0, 2, 1, 3});
  }
  const Shape shape = graph.shape(x);
  const int64_t given = node.integer("rotary_embedding_dim", 0), turned = given == 0 ? shape[3] : given,
                half = turned / 2;
  if (turned < 2 || turned > shape[3] || turned % 2 != 0)
    node.fail(fmt::format("turns {} of {} numbers", turned, shape[3]));
  const auto angles = [&](int input) {
    ValueId table = as_reals(graph, node.value(input));
    if (node.has(3)) table = ops::take(graph, table, node.value(3), 0);
    return unsqueeze(graph, table, {2});  // [B,S,1,half]
  };
  const ValueId cosine = angles(1), sine = angles(2);
  const auto part = [&](ValueId of, int64_t from, int64_t to) {
    Shape ends = graph.shape(of);
    ends[3] = to;
    return ops::slice(graph, of, {0, 0, 0, from}, ends.dims());
  };
  const bool interleaved = node.integer("interleaved", 0) != 0;
  const ValueId active = part(x, 0, turned);
  ValueId first, second;
  if (interleaved) {
    const ValueId pairs = ops::reshape(graph, active, {shape[0], shape[1], shape[2], half, 2});
    const auto side = [&](int64_t which) {
      return squeeze(
          graph, ops::slice(graph, pairs, {0, 0, 0, 0, which}, {shape[0], shape[1], shape[2], half, which + 1}), {4});
    };
    first = side(0);
    second = side(1);
  } else {
    first = part(active, 0, half);
    second = part(active, half, turned);
  }
  const ValueId real = ops::subtract(graph, ops::multiply(graph, cosine, first), ops::multiply(graph, sine, second));
  const ValueId imaginary = ops::add(graph, ops::multiply(graph, sine, first), ops::multiply(graph, cosine, second));
  ValueId y;
  if (interleaved) {
    y = ops::concat(graph, {unsqueeze(graph, real, {4}), unsqueeze(graph, imaginary, {4})}, 4);
    y = ops::reshape(graph, y, {shape[0], shape[1], shape[2], turned});
  } else {
    y = ops::concat(graph, {real, imaginary}, 3);
  }
  if (turned < shape[3]) y = ops::concat(graph, {y, part(x, turned, shape[3])}, 3);
  y = is_flat ? ops::reshape(graph, y, {shape[0], shape[1], shape[2] * shape[3]})
              : ops::transpose(graph, y, {0, 2, 1, 3});
  return {as_type(graph, y, dtype)};
}

/// A cache in which each sample's update begins at an index of its own.
std::vector<ValueId> convert_tensor_scatter(NodeContext& node) {
  Graph& graph = node.graph();
  const int rank = node.rank(0);
  const int64_t axis = resolve_axis(node, node.integer("axis", -2), rank);
  const Shape update = node.shape(1);
  if (rank < 2 || update.rank() != rank)
    node.fail(fmt::format("wants a cache and an update of as many axes, got {} and {}", to_string(node.shape(0)),
                          to_string(update)));
  const int64_t size = node.shape(0)[static_cast<int>(axis)], batch = update[0];
  std::vector<int64_t> along(static_cast<size_t>(rank), 1), per_sample = along;
  along[static_cast<size_t>(axis)] = update[static_cast<int>(axis)];
  per_sample[0] = batch;
  ValueId at = ops::reshape(graph, ops::iota(graph, DType::i64, update[static_cast<int>(axis)]), along);
  if (node.has(2)) at = ops::add(graph, at, ops::reshape(graph, as_type(graph, node.value(2), DType::i64), per_sample));
  if (node.text("mode", "linear") == "circular")
    at = ops::modulo(graph, at, ops::constant(graph, DType::i64, Shape{}, size));
  const ValueId indices = ops::broadcast_to(graph, at, update);
  return {ops::scatter_elements(graph, node.value(0), indices, node.value(1), axis, "none", node.hint())};
}

}  // namespace

void add_attention(OperatorTable& table) {
  const std::string family = "attention";
  table.add(family, "Attention", convert_attention);
  table.add(family, "RotaryEmbedding", convert_rotary);
  table.add(family, "TensorScatter", convert_tensor_scatter);
}

}  // namespace weft::onnx
