#include "weft/runtime/onednn/isa.h"

#include <oneapi/dnnl/dnnl.h>

namespace weft::onednn {

bool multiplies_fast(DType dtype) {
  const int isa = dnnl_get_effective_cpu_isa();
  const auto includes = [&](int wanted) { return (isa & wanted) == wanted; };
  if (dtype == DType::bf16) return includes(dnnl_cpu_isa_avx512_core_bf16);
#if DNNL_VERSION_MAJOR >= 3
  if (dtype == DType::f16) return includes(dnnl_cpu_isa_avx512_core_fp16);
#endif
  return false;
}

}  // namespace weft::onednn
