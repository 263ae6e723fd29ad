// A language model in the manner of GPT-2 (Radford et al. 2019): learned positions, pre-norm blocks, causal attention.
#include <fmt/format.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/models/builder.h"
#include "weft/models/entries.h"
#include "weft/models/options.h"
#include "weft/models/transformer.h"
#include "weft/models/vocabulary.h"

namespace weft::models {
namespace {

struct Preset {
  int64_t layers, heads, width;
};

Preset preset_named(const std::string& name) {
  if (name == "small") return {6, 6, 384};   // nanoGPT's model of characters
  if (name == "base") return {12, 12, 768};  // the smallest GPT-2
  return {4, 4, 128};
}

/// Of the learned positions those of the new tokens.
ValueId new_rows(ModelBuilder& m, ValueId positions, int64_t count) {
  Graph& graph = m.graph();
  const ValueId rows = ops::add(graph, ops::iota(graph, DType::i64, count), m.scalar("position"), "positions");
  return ops::embedding(graph, positions, ops::cast(graph, rows, DType::i32), "pos_emb");
}

Model build_transformer_lm(const OpRegistry& registry, const ModelInput& input, const ModelOptions& options,
                           Mode mode) {
  const OptionReader reader("transformer_lm", options);
  const Preset preset = preset_named(reader.choice("preset", "tiny", {"tiny", "small", "base"}));
  const int64_t layers = reader.integer("layers", preset.layers, 1, 1000);
  const int64_t heads = reader.integer("heads", preset.heads, 1, 1024);
  const int64_t width = reader.integer("width", preset.width, 1, 1 << 16);
  const double dropout = reader.probability("dropout", 0);
  const int64_t experts = reader.integer("experts", 0, 0, 1024);
  const double capacity = reader.number("capacity", 1.25, 0.01, 1000);
  const double balance = reader.number("balance", 0.01, 0, 1000);
  if (experts == 0 && (options.contains("capacity") || options.contains("balance")))
    fail(ErrorKind::usage, "[transformer_lm] capacity and balance are of experts; add experts=8, or leave them away");
  require_whole_heads("transformer_lm", width, heads);
  ModelBuilder m(registry, "transformer_lm", input, mode);
  Graph& graph = m.graph();
  const ValueId tokens = m.tokens();
  const int64_t window = input.shape[0], vocabulary = vocabulary_rows(reader, input);
  const TransformerSizes s{.batch = input.batch,
                           .length = input.new_tokens > 0 ? input.new_tokens : window,
                           .width = width,
                           .heads = heads,
                           .dropout = dropout,
                           .causal = true,
                           .norm = "ln",
                           .experts = experts,
                           // Evaluation leaves out fewer tokens (Fedus et al. 2021, table 6).
                           .capacity_factor = mode == Mode::training ? capacity : std::max(capacity, 2.0),
                           .balance = balance,
                           .capacity = input.new_tokens > 0 ? window : 0};
  const ValueId words = m.embedding(tokens, "tok_emb", vocabulary, width);
  ValueId positions = m.parameter("pos_emb.weight", {window, width}, {Initializer::Kind::normal, 0.02}, true);
  if (input.new_tokens > 0) positions = new_rows(m, positions, s.length);
  ValueId x = ops::add(graph, words, positions, "embedded");
  x = ops::reshape(graph, x, {s.batch * s.length, width}, "embedded.flat");
  x = m.dropout(x, dropout, "embedded.dropout");
  for (int64_t layer = 0; layer < layers; ++layer) x = transformer_block(m, x, fmt::format("blocks.{}", layer), s);
  x = m.layer_norm(x, "ln_f");
  const ValueId logits = m.linear(x, "head", {.width = vocabulary, .bias = false, .start = Start::small_normal});
  return m.finish(logits_of_tokens(m, logits, mode));
}

}  // namespace

ModelEntry transformer_lm_entry() {
  return {"transformer_lm",
          "language model in the manner of GPT-2: pre-norm blocks with causal attention",
          {"preset=tiny|small|base: layers, heads and width 4, 4, 128, or 6, 6, 384, or 12, 12, 768 as in GPT-2",
           "layers=4: number of blocks", "heads=4: attention heads per block", "width=128: numbers per token",
           "dropout=0: of each block's two results and of the embeddings",
           "experts=0: networks of each block of which a token takes one (Switch Transformer); 0: all take the same",
           "capacity=1.25: tokens that an expert takes in training, over an even share; 2 at least in evaluation",
           "balance=0.01: factor of the loss that balances experts", vocabulary_option()},
          {1, {128}, 256},
          build_transformer_lm,
          /*is_made_of_file=*/false,
          /*generates=*/true};
}

}  // namespace weft::models
