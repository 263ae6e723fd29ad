#include "weft/models/transformer.h"

#include "weft/base/error.h"
#include "weft/models/mixture_of_experts.h"

namespace weft::models {
namespace {

/// What a block's attention reads, each [batch, heads, length, width / heads].
struct Projections {
  ValueId q, k, v;
};

ValueId attention_with_caches(ModelBuilder& m, const Projections& of, const std::string& name,
                              const TransformerSizes& s) {
  const Shape shape{s.batch, s.heads, s.capacity, s.width / s.heads};
  const std::string keys = name + ".keys", values = name + ".values";
  const ops::CachedAttentionResult result = ops::cached_attention(
      m.graph(), of.q, of.k, of.v, m.state(keys, shape), m.state(values, shape), m.scalar("position"), name + ".mixed");
  m.graph().add_update(keys, result.keys);
  m.graph().add_update(values, result.values);
  return result.output;
}

ValueId self_attention(ModelBuilder& m, ValueId x, const std::string& name, const TransformerSizes& s) {
  Graph& graph = m.graph();
  const int64_t head_width = s.width / s.heads;
  ValueId qkv =
      m.linear(x, name + ".qkv", {.width = 3 * s.width, .start = Start::small_normal, .blocks = 3, .unit = head_width});
  qkv = ops::reshape(graph, qkv, {s.batch, s.length, 3, s.heads, head_width}, name + ".qkv.split");
  qkv = ops::transpose(graph, qkv, {2, 0, 3, 1, 4}, name + ".qkv.heads");
  const auto part = [&](int64_t index, const std::string& which) {
    const ValueId one = ops::slice(graph, qkv, {index, 0, 0, 0, 0}, {index + 1, s.batch, s.heads, s.length, head_width},
                                   name + which + ".slice");
    return ops::reshape(graph, one, {s.batch, s.heads, s.length, head_width}, name + which);
  };
  const ValueId q = part(0, ".q"), k = part(1, ".k"), v = part(2, ".v");
  ValueId mixed = s.capacity > 0 ? attention_with_caches(m, {q, k, v}, name, s)
                                 : ops::attention(graph, q, k, v, s.causal, name + ".mixed");
  mixed = ops::transpose(graph, mixed, {0, 2, 1, 3}, name + ".mixed.rows");
  mixed = ops::reshape(graph, mixed, {s.batch * s.length, s.width}, name + ".mixed.flat");
  return m.linear(mixed, name + ".proj", {.width = s.width, .start = Start::small_normal});
}

ValueId feed_forward(ModelBuilder& m, ValueId x, const std::string& name, const TransformerSizes& s) {
  if (s.experts > 0)
    return mixture_of_experts(m, x, name,
                              {.experts = s.experts,
                               .width = s.width,
                               .hidden = 4 * s.width,
                               .capacity_factor = s.capacity_factor,
                               .balance = s.balance});
  const ValueId wide = m.linear(x, name + ".fc1", {.width = 4 * s.width, .start = Start::small_normal});
  const ValueId active = ops::gelu(m.graph(), wide, false, name + ".gelu");
  return m.linear(active, name + ".fc2", {.width = s.width, .start = Start::small_normal});
}

}  // namespace

void require_whole_heads(const std::string& model, int64_t width, int64_t heads) {
  if (width % heads == 0) return;
  fail(ErrorKind::usage, "[{}] width {} cannot be split into {} heads; choose a multiple of {}", model, width, heads,
       heads);
}

ValueId transformer_block(ModelBuilder& m, ValueId x, const std::string& name, const TransformerSizes& s) {
  const std::string norm = name + "." + s.norm;
  const ValueId attended = self_attention(m, m.layer_norm(x, norm + "1", s.epsilon), name + ".attn", s);
  x = ops::add(m.graph(), x, m.dropout(attended, s.dropout, name + ".attn.dropout"), name + ".attn.sum");
  const ValueId refined = feed_forward(m, m.layer_norm(x, norm + "2", s.epsilon), name + ".mlp", s);
  return ops::add(m.graph(), x, m.dropout(refined, s.dropout, name + ".mlp.dropout"), name + ".mlp.sum");
}

}  // namespace weft::models
