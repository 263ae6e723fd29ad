#include "weft/models/vocabulary.h"

namespace weft::models {

int64_t vocabulary_rows(const OptionReader& reader, const ModelInput& input) {
  return reader.integer("vocabulary", input.classes, input.classes, int64_t{1} << 24);
}

ValueId logits_of_tokens(ModelBuilder& m, ValueId logits, Mode mode) {
  const int64_t rows = m.shape(logits)[0], tokens = m.input().classes;
  if (mode == Mode::training || m.shape(logits)[1] == tokens) return logits;
  return ops::slice(m.graph(), logits, {0, 0}, {rows, tokens}, "logits.of_tokens");
}

std::string vocabulary_option() {
  return "vocabulary=DATA: rows of the tokens' weights, as many as tokens or more: a multiple of the ranks along "
         "mesh.tensor lets them divide the rows";
}

}  // namespace weft::models
