// Labels of -100 do not count: the padding of sequences, pixels of no class. What is summed over those that do.
#pragma once

#include <string>

#include "weft/graph/graph.h"

namespace weft::step {

/// f32[]: how many labels count.
ValueId count_labels(Graph& graph, ValueId labels);

/// f32[]: the sum of the losses [rows], which are 0 where the label does not count, over how many count, or over 1.
ValueId mean_of_counted(Graph& graph, ValueId losses, ValueId counted, const std::string& name);

/// f32[]: `correct` times `all` labels over those that count.
ValueId scale_to_all(Graph& graph, ValueId correct, ValueId counted, double all, const std::string& name);

/// f32[]: of `samples` sequences, those whose every label that counts is the largest logit of its row. So many does
/// greedy decoding get right too: as long as it makes no mistake, it reads the very tokens that the labels say.
ValueId count_right_sequences(Graph& graph, ValueId logits, ValueId labels, int64_t samples, const std::string& name);

/// f32[C] each: rows of each class, by their labels and by their largest logits: of both, of either. Rows whose label
/// does not count are left out.
struct Overlap {
  ValueId intersections, unions;
};
Overlap overlap_of_classes(Graph& graph, ValueId logits, ValueId labels);

}  // namespace weft::step
