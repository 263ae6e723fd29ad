#include "weft/runtime/native/recurrent_gates.h"

namespace weft::native {
namespace {
using Loops = RecurrentGates;
}  // namespace
}  // namespace weft::native

#define WEFT_LOOPS "weft/runtime/native/recurrent_gates_loops.h"
#include "weft/runtime/native/multiversion.h"

namespace weft::native {

const RecurrentGates& recurrent_gates(Isa isa) { return loops_for(isa); }

}  // namespace weft::native
