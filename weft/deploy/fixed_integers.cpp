#include "weft/deploy/fixed_integers.h"

#include "weft/base/error.h"
#include "weft/passes/integer/form_integer_products.h"
#include "weft/passes/support/rebuild.h"

namespace weft::deploy {

Graph with_fixed_integers(const Graph& graph, const Backend& backend) {
  const Graph formed = passes::form_products_alone(graph, backend);
  Rewriter rewriter(formed);
  bool has_integers = false;
  for (size_t index = 0; index < formed.nodes().size(); ++index) {
    const NodeId id = passes::node_at(index);
    const Node& node = formed.node(id);
    if (node.op->name != "requantize") {
      rewriter.copy(id);
      continue;
    }
    has_integers = true;
    std::vector<ValueId> operands;
    for (const ValueId input : node.inputs) operands.push_back(rewriter.map(input));
    Attributes attributes = node.attributes;
    attributes.set("rounding", std::string("fixed"));
    passes::copy_with(rewriter, id, operands, attributes);
  }
  if (!has_integers)
    fail(ErrorKind::usage,
         "--requantize fixed: no layer of this model gives integers to another, so that it would change nothing; leave "
         "it away");
  return rewriter.finish();
}

}  // namespace weft::deploy
