#include "weft/passes/ranks/gather_parts.h"

#include "weft/graph/collective.h"
#include "weft/ops/ops.h"

namespace weft::passes {

ValueId gather_dimension(Graph& graph, ValueId part, int dimension, int64_t blocks, const MeshAxis& axis,
                         const Shape& whole, const std::string& as) {
  const Attributes attributes{{"ranks", axis.size}, {kAxis, axis.name}};
  int64_t runs = blocks;
  for (int outer = 0; outer < dimension; ++outer) runs *= whole[outer];
  if (runs == 1 && dimension == 0) return graph.add(kAllGather, {part}, attributes, "all_gather/" + as);
  const int64_t run = graph.shape(part).elements() / runs;
  const ValueId one = ops::reshape(graph, part, {1, runs, run}, as + ".runs");
  ValueId all = graph.add(kAllGather, {one}, attributes, "all_gather/" + as);
  if (runs > 1) all = ops::transpose(graph, all, {1, 0, 2}, as + ".in_order");
  return ops::reshape(graph, all, whole.dims(), as + ".whole");
}

ValueId scatter_dimension(Graph& graph, ValueId term, int dimension, int64_t blocks, const MeshAxis& axis,
                          const std::string& as) {
  const Attributes attributes{{"ranks", axis.size}, {kAxis, axis.name}, {"reduction", "sum"}};
  Shape part = graph.shape(term);
  int64_t runs = blocks;
  for (int outer = 0; outer < dimension; ++outer) runs *= part[outer];
  if (runs == 1 && dimension == 0) return graph.add(kReduceScatter, {term}, attributes, "reduce_scatter/" + as);
  const int64_t run = part.elements() / (runs * axis.size);
  ValueId all = ops::reshape(graph, term, {runs, axis.size, run}, as + ".runs");
  all = ops::transpose(graph, all, {1, 0, 2}, as + ".by_rank");
  const ValueId own = graph.add(kReduceScatter, {all}, attributes, "reduce_scatter/" + as);
  part[dimension] /= axis.size;
  return ops::reshape(graph, own, part.dims(), as + ".own");
}

ValueId restore_elements(Graph& graph, ValueId parts, const Shape& whole, const std::string& as) {
  const int64_t elements = whole.elements();
  if (graph.type(parts).elements() != elements) parts = ops::slice(graph, parts, {0}, {elements}, as + ".elements");
  return whole.rank() == 1 ? parts : ops::reshape(graph, parts, whole.dims(), as + ".whole");
}

}  // namespace weft::passes
