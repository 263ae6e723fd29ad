#include "weft/cpu/native/recurrent/recurrent_gates.h"

namespace weft::native {
namespace {
using Loops = RecurrentGates;
}  // namespace
}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/recurrent/recurrent_gates_loops.h"
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

const RecurrentGates& recurrent_gates(Isa isa) { return loops_for(isa); }

}  // namespace weft::native
