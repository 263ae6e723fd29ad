#include "weft/cpu/inference_kernels.h"

#include "weft/cpu/integer_nodes.h"
#include "weft/cpu/native/elementwise/through_f32.h"
#include "weft/cpu/native/support/families.h"
#include "weft/cpu/reference/reference.h"

namespace weft {

KernelTable inference_kernels(const OpRegistry& registry) {
  KernelTable table;
  native::add_forward_kernels(table, detect_isa());
  add_forward_onednn_kernels(table);
  native::add_weight_tiles(table, detect_isa());
  native::add_through_f32(table, registry, detect_isa());
  leave_integers_to_reference(table);
  add_forward_reference_kernels(table);
  return table;
}

}  // namespace weft
