// Translates a sequence of tokens into another: a recurrent encoder that reads in both directions, a decoder that
// starts from what it ends with, and attention over all its steps (Luong, Pham and Manning 2015, the "general" score).
#include <algorithm>

#include "weft/base/error.h"
#include "weft/models/builder.h"
#include "weft/models/entries.h"
#include "weft/models/options.h"
#include "weft/models/recurrent.h"
#include "weft/models/vocabulary.h"

namespace weft::models {
namespace {

// Scores of padding: far below all others, yet finite, so that a source of nothing else gives numbers.
constexpr double kMasked = -1e30;

struct Sizes {
  int64_t batch, source, target, width, features;
};

/// [N,length] from column `first` of the tokens on, as steps [length,N,features].
ValueId embed(ModelBuilder& m, ValueId tokens, ValueId table, int64_t first, int64_t length, const std::string& name) {
  const int64_t batch = m.shape(tokens)[0];
  const ValueId part = ops::slice(m.graph(), tokens, {0, first}, {batch, first + length}, name + ".tokens");
  return ops::embedding(m.graph(), table, ops::transpose(m.graph(), part, {1, 0}, name + ".steps"), name + ".embedded");
}

/// [N,1,S]: kMasked where the source is padding, else 0.
ValueId padding_mask(Graph& graph, ValueId tokens, int64_t padding, const Sizes& s) {
  const ValueId source = ops::slice(graph, tokens, {0, 0}, {s.batch, s.source}, "mask.source");
  const ValueId token = graph.add(
      "constant", {}, {{"shape", std::vector<int64_t>{}}, {"value", static_cast<double>(padding)}, {"dtype", "i32"}},
      "mask.padding");
  const ValueId mask = ops::multiply_scalar(graph, ops::equal(graph, source, token, "mask"), kMasked, "mask.scores");
  return ops::reshape(graph, mask, {s.batch, 1, s.source}, "mask.rows");
}

/// x [..,C] -> [rows,width]
ValueId rows_through(ModelBuilder& m, ValueId x, const std::string& name, int64_t width, bool bias) {
  const int64_t columns = m.shape(x)[m.shape(x).rank() - 1];
  const ValueId rows = ops::reshape(m.graph(), x, {-1, columns}, name + ".rows");
  return m.linear(rows, name, {.width = width, .bias = bias});
}

/// queries [N,T,width] attend to steps [N,S,2 width]: tanh of a linear layer over both, [N T,width].
ValueId attend(ModelBuilder& m, ValueId queries, ValueId steps, ValueId mask, const Sizes& s) {
  Graph& graph = m.graph();
  ValueId keys = rows_through(m, steps, "attention.keys", s.width, false);
  keys = ops::reshape(graph, keys, {s.batch, s.source, s.width}, "attention.keys.steps");
  ValueId scores = ops::matmul(graph, queries, keys, false, true, "attention.scores");
  scores = ops::add(graph, scores, mask, "attention.scores.masked");
  const ValueId context = ops::matmul(graph, ops::softmax(graph, scores), steps, false, false, "attention.context");
  const ValueId both = ops::concat(graph, {context, queries}, 2, "attention.both");
  return ops::tanh(graph, rows_through(m, both, "attention.out", s.width, false), "attention.state");
}

Model build_seq2seq(const OpRegistry& registry, const ModelInput& input, const ModelOptions& options, Mode mode) {
  const OptionReader reader("seq2seq_attention", options);
  if (input.shape == std::vector<int64_t>{1})
    fail(ErrorKind::shape, "[seq2seq_attention] wants a source and a target in each sample, got sequences of 1 token");
  const int64_t length = input.shape[0], longest = std::max<int64_t>(1, length - 1);
  const int64_t source = reader.integer_by_data("source", input.source, std::max<int64_t>(1, length / 2), 1, longest);
  const int64_t width = reader.integer("width", 128, 1, 1 << 16), padding = reader.integer("padding", 0, 0, 1 << 24);
  const int64_t layers = reader.integer("layers", 1, 1, 100), target = length - source;
  const int64_t vocabulary = vocabulary_rows(reader, input);
  const double dropout = reader.probability("dropout", 0);
  const Sizes s{input.batch, source, target, width, reader.integer("embedding", width, 1, 1 << 16)};
  ModelBuilder m(registry, "seq2seq_attention", input, mode);
  Graph& graph = m.graph();
  const ValueId tokens = m.tokens_with(target);
  const ValueId table = m.parameter("embedding.weight", {vocabulary, s.features}, {Initializer::Kind::normal, 1}, true);

  const ValueId words = m.dropout(embed(m, tokens, table, 0, source, "source"), dropout, "source.dropout");
  const RecurrentStates encoded =
      recurrent(m, words, "encoder", {.layers = layers, .width = width, .bidirectional = true, .dropout = dropout});
  const ValueId hidden =
      ops::tanh(graph, m.linear(encoded.hidden, "bridge_hidden", {.width = width}), "bridge_hidden.tanh");
  const ValueId cell = m.linear(encoded.cell, "bridge_cell", {.width = width});

  const ValueId given = m.dropout(embed(m, tokens, table, source, target, "target"), dropout, "target.dropout");
  const RecurrentStates decoded =
      recurrent(m, given, "decoder",
                {.layers = layers, .width = width, .dropout = dropout, .initial_hidden = hidden, .initial_cell = cell});

  const ValueId queries = ops::transpose(graph, decoded.output, {1, 0, 2}, "attention.queries");
  const ValueId steps = ops::transpose(graph, encoded.output, {1, 0, 2}, "attention.steps");
  const ValueId state = attend(m, queries, steps, padding_mask(graph, tokens, padding, s), s);
  const ValueId logits = m.linear(m.dropout(state, dropout, "attention.dropout"), "head", {.width = vocabulary});
  return m.finish(logits_of_tokens(m, logits, mode));
}

}  // namespace

ModelEntry seq2seq_attention_entry() {
  return {"seq2seq_attention",
          "translates sequences: recurrent encoder in both directions, decoder, attention",
          {"source=DATA: tokens of a sample to be translated, without data half; the others are the translation so far",
           "width=128: of the hidden states", "layers=1: of encoder and decoder", "embedding=WIDTH: numbers per token",
           "padding=0: the token that fills up sources", "dropout=0: of embeddings, between layers and before the last",
           vocabulary_option()},
          {1, {32}, 64},
          build_seq2seq};
}

}  // namespace weft::models
