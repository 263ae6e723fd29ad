#include "weft/cpu/onednn/isa.h"

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

#include <utility>

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

std::string effective_isa() {
  constexpr std::pair<int, const char*> names[] = {
    {dnnl_cpu_isa_sse41, "SSE41"},
    {dnnl_cpu_isa_avx, "AVX"},
    {dnnl_cpu_isa_avx2, "AVX2"},
    {dnnl_cpu_isa_avx2_vnni, "AVX2_VNNI"},
    {dnnl_cpu_isa_avx512_core, "AVX512_CORE"},
    {dnnl_cpu_isa_avx512_core_vnni, "AVX512_CORE_VNNI"},
    {dnnl_cpu_isa_avx512_core_bf16, "AVX512_CORE_BF16"},
#if DNNL_VERSION_MAJOR >= 3
    {dnnl_cpu_isa_avx512_core_fp16, "AVX512_CORE_FP16"},
#endif
    {dnnl_cpu_isa_avx512_core_amx, "AVX512_CORE_AMX"},
  };
  const int isa = dnnl_get_effective_cpu_isa();
  for (const auto& [value, name] : names)
    if (value == isa) return name;
  return "unknown";
}

std::string library_version() {
  const dnnl_version_t& version = *dnnl_version();
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

}  // namespace weft::onednn
