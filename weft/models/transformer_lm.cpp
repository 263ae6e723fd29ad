// A language model in the manner of GPT-2 (Radford et al. 2019): learned positions, pre-norm blocks, causal attention.
#include "weft/base/error.h"
#include "weft/models/builder.h"
#include "weft/models/entries.h"
#include "weft/models/options.h"

namespace weft::models {
namespace {

struct Sizes {
  int64_t batch, length, width, heads;
  double dropout;
};

/// x and its result are [batch*length, width].
ValueId self_attention(ModelBuilder& m, ValueId x, const std::string& name, const Sizes& s) {
  Graph& graph = m.graph();
  const int64_t head_width = s.width / s.heads;
  ValueId qkv = m.linear(x, name + ".qkv", {.width = 3 * s.width, .start = Start::small_normal});
  qkv = ops::reshape(graph, qkv, {s.batch, s.length, 3, s.heads, head_width}, name + ".qkv.split");
  qkv = ops::transpose(graph, qkv, {2, 0, 3, 1, 4}, name + ".qkv.heads");
  const auto part = [&](int64_t index, const std::string& which) {
    const ValueId one = ops::slice(graph, qkv, {index, 0, 0, 0, 0}, {index + 1, s.batch, s.heads, s.length, head_width},
                                   name + which + ".slice");
    return ops::reshape(graph, one, {s.batch, s.heads, s.length, head_width}, name + which);
  };
  const ValueId q = part(0, ".q"), k = part(1, ".k"), v = part(2, ".v");
  ValueId mixed = ops::attention(graph, q, k, v, true, name + ".mixed");
  mixed = ops::transpose(graph, mixed, {0, 2, 1, 3}, name + ".mixed.rows");
  mixed = ops::reshape(graph, mixed, {s.batch * s.length, s.width}, name + ".mixed.flat");
  return m.linear(mixed, name + ".proj", {.width = s.width, .start = Start::small_normal});
}

ValueId feed_forward(ModelBuilder& m, ValueId x, const std::string& name, const Sizes& s) {
  const ValueId wide = m.linear(x, name + ".fc1", {.width = 4 * s.width, .start = Start::small_normal});
  const ValueId active = ops::gelu(m.graph(), wide, false, name + ".gelu");
  return m.linear(active, name + ".fc2", {.width = s.width, .start = Start::small_normal});
}

ValueId block(ModelBuilder& m, ValueId x, const std::string& name, const Sizes& s) {
  const ValueId attended = self_attention(m, m.layer_norm(x, name + ".ln1"), name + ".attn", s);
  x = ops::add(m.graph(), x, m.dropout(attended, s.dropout, name + ".attn.dropout"), name + ".attn.sum");
  const ValueId refined = feed_forward(m, m.layer_norm(x, name + ".ln2"), name + ".mlp", s);
  return ops::add(m.graph(), x, m.dropout(refined, s.dropout, name + ".mlp.dropout"), name + ".mlp.sum");
}

Model build_transformer_lm(const OpRegistry& registry, const ModelInput& input, const ModelOptions& options,
                           Mode mode) {
  const OptionReader reader("transformer_lm", options);
  const int64_t layers = reader.integer("layers", 4, 1, 1000);
  const int64_t heads = reader.integer("heads", 4, 1, 1024);
  const int64_t width = reader.integer("width", 128, 1, 1 << 16);
  const double dropout = reader.probability("dropout", 0);
  if (width % heads != 0) {
    fail(ErrorKind::usage, "[transformer_lm] width {} cannot be split into {} heads; choose a multiple of {}", width,
         heads, heads);
  }
  ModelBuilder m(registry, "transformer_lm", input, mode);
  Graph& graph = m.graph();
  const ValueId tokens = m.tokens();
  const Sizes s{input.batch, input.shape[0], width, heads, dropout};
  const ValueId words = m.embedding(tokens, "tok_emb", input.classes, width);
  const ValueId positions = m.parameter("pos_emb.weight", {s.length, width}, {Initializer::Kind::normal, 0.02}, true);
  ValueId x = ops::add(graph, words, positions, "embedded");
  x = ops::reshape(graph, x, {s.batch * s.length, width}, "embedded.flat");
  x = m.dropout(x, dropout, "embedded.dropout");
  for (int64_t layer = 0; layer < layers; ++layer) x = block(m, x, fmt::format("blocks.{}", layer), s);
  x = m.layer_norm(x, "ln_f");
  return m.finish(m.linear(x, "head", {.width = input.classes, .bias = false, .start = Start::small_normal}));
}

}  // namespace

ModelEntry transformer_lm_entry() {
  return {"transformer_lm",
          "language model in the manner of GPT-2: pre-norm blocks with causal attention",
          {"layers=4: number of blocks", "heads=4: attention heads per block", "width=128: numbers per token",
           "dropout=0: of each block's two results and of the embeddings"},
          {1, {128}, 256},
          build_transformer_lm};
}

}  // namespace weft::models
