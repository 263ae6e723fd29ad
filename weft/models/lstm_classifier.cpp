// Classifies sequences by what a recurrent network ends with: tokens through an embedding, or images row by row.
#include "weft/models/builder.h"
#include "weft/models/entries.h"
#include "weft/models/options.h"
#include "weft/models/recurrent.h"

namespace weft::models {
namespace {

/// [T,N,features]: the tokens' embeddings, or the pixels of each row of the images.
ValueId read_steps(ModelBuilder& m, const OptionReader& reader, int64_t width) {
  Graph& graph = m.graph();
  const int64_t batch = m.input().batch;
  if (m.input().shape.size() == 1) {
    const int64_t vocabulary = reader.integer_by_data("vocabulary", m.input().vocabulary, 256, 1, 1 << 24);
    const int64_t features = reader.integer("embedding", width, 1, 1 << 16);
    const ValueId steps = ops::transpose(graph, m.sequence(), {1, 0}, "tokens.steps");
    const ValueId table = m.parameter("embedding.weight", {vocabulary, features}, {Initializer::Kind::normal, 1}, true);
    return ops::embedding(graph, table, steps, "embedding");
  }
  const ValueId image = m.image(1);
  const Shape shape = m.shape(image);
  const ValueId rows = ops::transpose(graph, image, {2, 0, 1, 3}, "rows");
  return ops::reshape(graph, rows, {shape[2], batch, shape[1] * shape[3]}, "rows.steps");
}

Model build_lstm_classifier(const OpRegistry& registry, const ModelInput& input, const ModelOptions& options,
                            Mode mode) {
  const OptionReader reader("lstm_classifier", options);
  const RecurrentLayers layers{.cell = reader.choice("cell", "lstm", {"lstm", "gru"}),
                               .layers = reader.integer("layers", 1, 1, 100),
                               .width = reader.integer("width", 128, 1, 1 << 16),
                               .bidirectional = reader.choice("bidirectional", "no", {"yes", "no"}) == "yes",
                               .dropout = reader.probability("dropout", 0)};
  ModelBuilder m(registry, "lstm_classifier", input, mode);
  const ValueId steps = read_steps(m, reader, layers.width);
  const RecurrentStates states = recurrent(m, steps, "rnn", layers);
  const ValueId summary = m.dropout(states.hidden, layers.dropout, "rnn.dropout");
  return m.finish(m.linear(summary, "fc", {.width = input.classes}));
}

}  // namespace

ModelEntry lstm_classifier_entry() {
  return {"lstm_classifier",
          "recurrent layers over tokens, or over the rows of images, and a linear layer on their last state",
          {"cell=lstm|gru: kind of the recurrent layers", "layers=1: of them, one on the other",
           "width=128: of the hidden state", "bidirectional=no|yes: read in both directions",
           "dropout=0: between layers and before the last one", "vocabulary=DATA: number of tokens, without data 256",
           "embedding=WIDTH: numbers per token"},
          {1, {1, 28, 28}, 10},
          build_lstm_classifier};
}

}  // namespace weft::models
