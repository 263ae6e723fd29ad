// Reads lines of text in images (Shi, Bai and Yao 2015): convolutions make columns of features, a recurrent network
// reads them from both sides, connectionist temporal classification learns without knowing where each letter is.
#include <fmt/format.h>

#include "weft/base/error.h"
#include "weft/models/builder.h"
#include "weft/models/entries.h"
#include "weft/models/options.h"
#include "weft/models/recurrent.h"

namespace weft::models {
namespace {

constexpr int64_t kSmallestImage = 32;  // four halvings and a window of 2 leave one row of 32

/// The paper's table 1: seven convolutions, the third, fifth and seventh with batch norm, and four poolings, of which
/// the last two halve the height alone.
ValueId convolutions(ModelBuilder& m, ValueId x, int64_t width) {
  Graph& graph = m.graph();
  const int64_t channels[] = {width, 2 * width, 4 * width, 4 * width, 8 * width, 8 * width, 8 * width};
  for (int i = 0; i < 7; ++i) {
    const bool is_last = i == 6;
    const std::string number = std::to_string(i);
    x = m.conv(x, "cnn.conv" + number,
               {.channels = channels[i],
                .kernel = is_last ? 2 : 3,
                .padding = is_last ? ops::Pair{0, 0} : ops::Pair{1, 1},
                .bias = true});
    if (i == 2 || i == 4 || i == 6) x = m.batch_norm(x, "cnn.batchnorm" + number);
    x = ops::relu(graph, x, "cnn.relu" + number);
    if (i < 2) x = ops::max_pool2d(graph, x, {.kernel = {2, 2}, .stride = {2, 2}}, "cnn.pool" + number);
    if (i == 3 || i == 5) x = ops::max_pool2d(graph, x, {.kernel = {2, 1}, .stride = {2, 1}}, "cnn.pool" + number);
  }
  return x;
}

Model build_crnn(const OpRegistry& registry, const ModelInput& input, const ModelOptions& options, Mode mode) {
  const OptionReader reader("crnn", options);
  const int64_t width = reader.integer("width", 64, 1, 1 << 12),
                letters = reader.integer_by_data("length", input.text_length, 16, 1, 1 << 12);
  const RecurrentLayers layers{.layers = reader.integer("layers", 2, 1, 100),
                               .width = reader.integer("rnn_width", 256, 1, 1 << 16),
                               .bidirectional = true};
  if (input.classes < 2)
    fail(ErrorKind::usage, "[crnn] wants a blank, class 0, and at least one letter, got {} classes", input.classes);
  ModelBuilder m(registry, "crnn", input, mode);
  Graph& graph = m.graph();
  const ValueId columns = convolutions(m, m.image_of_text(kSmallestImage, letters), width);
  const Shape shape = m.shape(columns);  // [N,C,rows,T]
  const int64_t batch = shape[0], features = shape[1] * shape[2], steps = shape[3];
  if (steps < letters)
    fail(ErrorKind::shape,
         "[crnn] images of width {} give {} steps, too few for texts of {}; widen them to {}, or set "
         "length",
         input.shape[2], steps, letters, 4 * (letters + 1));
  ValueId x = ops::transpose(graph, columns, {3, 0, 1, 2}, "columns");
  x = ops::reshape(graph, x, {steps, batch, features}, "columns.steps");
  const ValueId read = recurrent(m, x, "rnn", layers).output;
  const ValueId rows = ops::reshape(graph, read, {steps * batch, 2 * layers.width}, "rnn.rows");
  const ValueId classes = m.linear(rows, "fc", {.width = input.classes});
  const ValueId logits = ops::reshape(graph, classes, {steps, batch, input.classes}, "logits");
  Model model = m.finish(logits);
  const ops::CtcTargets texts{ops::reshape(model.graph, model.labels, {batch, letters}, "texts")};
  const ValueId likely = ops::log_softmax(model.graph, logits, -1, "log_probabilities");
  model.losses = ops::ctc_loss(model.graph, likely, texts, {.zero_infinity = true}, "losses");
  model.correct = ops::ctc_count_correct(model.graph, logits, texts, 0, "correct");
  return model;
}

}  // namespace

ModelEntry crnn_entry() {
  return {"crnn",
          "reads a line of text in an image: convolutions, recurrent layers, connectionist temporal classification",
          {"width=64: channels of the first convolution", "layers=2: recurrent layers in both directions",
           "rnn_width=256: of their hidden states",
           "length=DATA: of the longest text, without data 16; shorter ones end with class 0"},
          {1, {1, 32, 128}, 37},
          build_crnn};
}

}  // namespace weft::models
