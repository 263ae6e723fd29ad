// The text form of a graph: one line per input, node, output and update; parses back to the same graph.
//
//   graph "lenet5" {
//     batch %image "image" : f32[64,1,28,28]
//     parameter %conv1.weight "conv1.weight" : f32[6,1,5,5]
//     %conv1 = conv2d(%image, %conv1.weight) {padding=[2,2]} : f32[64,6,28,28]
//     %bn, %bn.1, %bn.2 = batch_norm(%conv1, %s, %b) {epsilon=1e-05} : f32[64,6,28,28], f32[6], f32[6]
//     output "loss" %loss
//     update "conv1.weight" %sgd_update
//   }
//
// A layout follows the type: f32[64,16,28,28]@aBcd16b. Where ranks share a value, what this rank has of it stands
// behind: f32[64,24] {sharding="split(-,tensor=2) of (64,48)"}. Attributes equal to their defaults are not printed.
// '#' begins a comment that runs to the end of the line. A constant of few elements stands in the text; of a larger one
// the text has type and hash, and a table or a file beside it the data (graph/constant_text.h).
#pragma once

#include <string>
#include <string_view>

#include "weft/graph/constant_text.h"
#include "weft/graph/graph.h"

namespace weft {

std::string print_graph(const Graph& graph);

/// Error(data) with the line number and what was expected. Shapes are inferred again and compared with those written.
/// `constants` has the data of which the text has the hash only.
Graph parse_graph(std::string_view text, const OpRegistry& registry, const ConstantTable& constants = {});

}  // namespace weft
