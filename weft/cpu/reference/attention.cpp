// The causal mask over attention scores.
#include "weft/cpu/reference/reference.h"

namespace weft::reference {
namespace {

Body prepare_causal_mask(const NodeSignature& node) {
  const Shape& shape = node.inputs[0].shape;
  const int64_t rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1];
  const int64_t elements = shape.elements();
  const auto masked = static_cast<float>(node.attributes.real("value"));
  return [=](const KernelArguments& call) {
    for (int64_t i = 0; i < elements; ++i) {
      const int64_t row = i / columns % rows, column = i % columns;
      output(call, 0)[i] = column <= row + (columns - rows) ? input(call, 0)[i] : masked;
    }
  };
}

}  // namespace

void add_attention(KernelTable& table) { add_plain(table, "causal_mask", prepare_causal_mask); }

}  // namespace weft::reference
