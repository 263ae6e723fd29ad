// The option `vocabulary` of language models: more rows than the data have tokens, so that ranks can divide them.
#pragma once

#include <string>

#include "weft/models/builder.h"
#include "weft/models/options.h"

namespace weft::models {

/// Rows of the embedding and outputs of the last layer: the data's tokens, or more where the option says so, as
/// Megatron-LM pads them (Shoeybi et al. 2019, section 3). Error(usage) for fewer.
int64_t vocabulary_rows(const OptionReader& reader, const ModelInput& input);

/// Logits [N,rows] of a model that pads. In inference those of the data's tokens alone: nothing else is ever
/// predicted. In training all of them, since ranks hold them in equal parts; no label is one of the others, whose
/// probabilities fall to nothing.
ValueId logits_of_tokens(ModelBuilder& m, ValueId logits, Mode mode);

/// For the list of a model's options.
std::string vocabulary_option();

}  // namespace weft::models
