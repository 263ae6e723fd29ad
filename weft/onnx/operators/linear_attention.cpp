// Linear attention: a state of keys times values takes the place of scores. The host computes it, token after token.
#include <algorithm>
#include <cmath>

#include "weft/onnx/operators/operators.h"
#include "weft/tensor/element.h"

namespace weft::onnx {

namespace {

/// The sizes, and what the rule reads: Katharopoulos et al. 2020 ("linear"), Yang et al. 2024 ("gated"), Schlag et al.
/// 2021 ("delta"), Yang et al. 2025 ("gated_delta").
struct LinearAttention {
  int64_t batch, length, query_heads, key_heads, key_size, value_size;
  bool is_gated, is_delta;
  double scale;
};

void require_shape(const HostContext& node, int input, const Shape& shape) {
  if (node.tensor(input).shape() != shape)
    node.fail(
        fmt::format("its input {} must be {}, got {}", input, to_string(shape), to_string(node.tensor(input).shape())));
}

LinearAttention find_attention(const HostContext& node) {
  LinearAttention found{};
  const Shape &query = node.tensor(0).shape(), &value = node.tensor(2).shape();
  found.query_heads = node.integer("q_num_heads");
  found.key_heads = node.integer("kv_num_heads");
  if (found.query_heads < 1 || found.key_heads < 1 || found.query_heads % found.key_heads != 0)
    node.fail("wants a multiple of the heads of its keys as heads of queries");
  if (query.rank() != 3 || value.rank() != 3 || query[2] % found.query_heads != 0 || value[2] % found.key_heads != 0)
    node.fail(fmt::format("cannot cut {} and {} into heads", to_string(query), to_string(value)));
  found.batch = query[0];
  found.length = query[1];
  found.key_size = query[2] / found.query_heads;
  found.value_size = value[2] / found.key_heads;
  require_shape(node, 1, Shape{found.batch, found.length, found.key_heads * found.key_size});
  require_shape(node, 2, Shape{found.batch, found.length, found.key_heads * found.value_size});
  const std::string rule = node.text("update_rule", "gated_delta");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
    node.fail("has the unknown update_rule '" + rule + "'");
  found.is_gated = rule.starts_with("gated");
  found.is_delta = rule.ends_with("delta");
  if (found.is_gated != node.has(4)) node.fail("wants a decay with a gated rule, and only then");
  if (found.is_delta != node.has(5)) node.fail("wants a beta with a delta rule, and only then");
  if (node.has(3)) require_shape(node, 3, Shape{found.batch, found.key_heads, found.key_size, found.value_size});
  const double scale = node.real("scale", 0);
  found.scale = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(found.key_size));
  return found;
}

/// One number per head, or more: how many of `input`, which has [batch, length, count].
int64_t count_per_token(const HostContext& node, int input, const LinearAttention& sizes,
                        std::initializer_list<int64_t> allowed) {
  const Shape& shape = node.tensor(input).shape();
  if (shape.rank() != 3 || shape[0] != sizes.batch || shape[1] != sizes.length ||
      std::find(allowed.begin(), allowed.end(), shape[2]) == allowed.end())
    node.fail(fmt::format("its input {} has the shape {}, which fits neither heads nor keys", input, to_string(shape)));
  return shape[2];
}

std::vector<HostValue> run_linear_attention(const HostContext& node) {
  const LinearAttention sizes = find_attention(node);
  const auto query = reals_of(node.tensor(0)), key = reals_of(node.tensor(1)), value = reals_of(node.tensor(2));
  const auto decay = sizes.is_gated ? reals_of(node.tensor(4)) : std::vector<double>{};
  const auto beta = sizes.is_delta ? reals_of(node.tensor(5)) : std::vector<double>{};
  const int64_t dk = sizes.key_size, dv = sizes.value_size, group = sizes.query_heads / sizes.key_heads;
  const int64_t decays = sizes.is_gated ? count_per_token(node, 4, sizes, {sizes.key_heads, sizes.key_heads * dk}) : 1;
  const int64_t betas = sizes.is_delta ? count_per_token(node, 5, sizes, {sizes.key_heads, 1}) : 1;
  const Shape state_shape{sizes.batch, sizes.key_heads, dk, dv};
  std::vector<double> state =
      node.has(3) ? reals_of(node.tensor(3)) : std::vector<double>(static_cast<size_t>(state_shape.elements()), 0.0);
  Tensor result(node.tensor(0).dtype(), Shape{sizes.batch, sizes.length, sizes.query_heads * dv});
  std::vector<double> written(static_cast<size_t>(dv));
  for (int64_t batch = 0; batch < sizes.batch; ++batch)
    for (int64_t head = 0; head < sizes.key_heads; ++head) {
      double* memory = &state[static_cast<size_t>((batch * sizes.key_heads + head) * dk * dv)];
      for (int64_t token = 0; token < sizes.length; ++token) {
        const int64_t at = batch * sizes.length + token;
        const double* k = &key[static_cast<size_t>((at * sizes.key_heads + head) * dk)];
        const double* v = &value[static_cast<size_t>((at * sizes.key_heads + head) * dv)];
        if (sizes.is_gated)
          for (int64_t d = 0; d < dk; ++d) {
            const int64_t column = decays == sizes.key_heads ? head : head * dk + d;
            const double factor = std::exp(decay[static_cast<size_t>(at * decays + column)]);
            for (int64_t m = 0; m < dv; ++m) memory[d * dv + m] *= factor;
          }
        for (int64_t m = 0; m < dv; ++m) {
          double& entry = written[static_cast<size_t>(m)];
          entry = v[m];
          if (!sizes.is_delta) continue;
          for (int64_t d = 0; d < dk; ++d) entry -= memory[d * dv + m] * k[d];
          entry *= beta[static_cast<size_t>(at * betas + (betas == 1 ? 0 : head))];
        }
        for (int64_t d = 0; d < dk; ++d)
          for (int64_t m = 0; m < dv; ++m) memory[d * dv + m] += k[d] * written[static_cast<size_t>(m)];
        for (int64_t each = 0; each < group; ++each) {
          const int64_t query_head = head * group + each;
          const double* q = &query[static_cast<size_t>((at * sizes.query_heads + query_head) * dk)];
          for (int64_t m = 0; m < dv; ++m) {
            double sum = 0;
            for (int64_t d = 0; d < dk; ++d) sum += q[d] * memory[d * dv + m];
            store_element(result.dtype(), result.data(), (at * sizes.query_heads + query_head) * dv + m,
                          sum * sizes.scale);
          }
        }
      }
    }
  Tensor last(node.has(3) ? node.tensor(3).dtype() : node.tensor(0).dtype(), state_shape);
  for (int64_t index = 0; index < last.elements(); ++index)
    store_element(last.dtype(), last.data(), index, state[static_cast<size_t>(index)]);
  return {result, last};
}

}  // namespace

void add_linear_attention(OperatorTable& table) {
  table.add_on_host("attention", "LinearAttention", run_linear_attention);
}

}  // namespace weft::onnx
