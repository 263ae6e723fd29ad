// The text form of a graph with symbols: that of an ordinary graph (graph/text.h), in which dimensions and attributes
// of integers may be expressions.
//
//   graph "lm" {
//     batch %tokens "tokens" : i32[N,T]
//     parameter %table "table" : f32[1000,64]
//     %rows = embedding(%table, %tokens) : f32[N,T,64]
//     %flat = reshape(%rows) {shape=[N*T,64]} : f32[N*T,64]
//     output "rows" %flat
//   }
#pragma once

#include <string>
#include <string_view>

#include "weft/graph/constant_text.h"
#include "weft/graph/symbolic_graph.h"

namespace weft {

std::string print_symbolic_graph(const SymbolicGraph& graph);

/// Error(data) with the line number and what was expected, or what the shape rules say. Layouts are of no graph with
/// symbols.
SymbolicGraph parse_symbolic_graph(std::string_view text, const OpRegistry& registry,
                                   const ConstantTable& constants = {});

/// Whether a symbol stands in the text of a graph.
bool has_symbols(std::string_view graph_text);

}  // namespace weft
