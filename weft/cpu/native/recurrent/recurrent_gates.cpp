#include "weft/cpu/native/recurrent/recurrent_gates.h"

#include "weft/cpu/native/support/families.h"

namespace weft::native {
namespace {
using Loops = RecurrentGates;
using TrainingLoops = RecurrentGradientGates;
}  // namespace
}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/recurrent/recurrent_gates_loops.h"
#define WEFT_TRAINING_LOOPS
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

const RecurrentGates& recurrent_gates(Isa isa) { return loops_for(isa); }
const RecurrentGradientGates& recurrent_gradient_gates(Isa isa) { return training_loops_for(isa); }

bool is_plain_recurrence(const NodeSignature& node, std::string& why_not) {
  if (!all_plain(node, why_not)) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (const DType dtype = node.inputs[i].dtype;
        dtype != DType::f32 && (i != 1 || !is_floating(dtype) || dtype == DType::f64)) {
      why_not = "an operand is " + std::string(name_of(dtype));
      return false;
    }
  return true;
}

}  // namespace weft::native
