#include "weft/cpu/native/recurrent/recurrent_gates.h"

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

}  // namespace weft::native
