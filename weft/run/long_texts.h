// Texts in pictures that connectionist temporal classification cannot learn: those with more letters, and blanks
// between equal ones, than the network has steps. Their loss counts as 0.
#pragma once

#include <string>

#include "weft/data/dataset/dataset.h"
#include "weft/graph/graph.h"

namespace weft::run {

/// How many of the data there are, of those that `step`, a training step, learns; empty where there is none, or where
/// it learns otherwise.
std::string note_of_long_texts(const Graph& step, const data::Dataset& data);

}  // namespace weft::run
