// Finds texts in pictures that connectionist temporal classification cannot learn: their letters, and the blanks
// between equal letters, outnumber the steps of the network. Their loss counts as 0.
#pragma once

#include <string>

#include "weft/data/dataset/dataset.h"
#include "weft/graph/graph.h"

namespace weft::run {

/// Says how many samples of `data` have such a text, for a training step `step` that learns them by this loss. Empty
/// where there are none or the step uses another loss.
std::string note_of_long_texts(const Graph& step, const data::Dataset& data);

}  // namespace weft::run
