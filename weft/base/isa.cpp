#include "weft/base/isa.h"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace weft {

namespace {

Isa supported_isa() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return Isa::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
#endif
  return Isa::baseline;
}

/// In capital letters; empty where nothing limits the instruction set.
std::string limit() {
  const char* text = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (text == nullptr) text = std::getenv("DNNL_MAX_CPU_ISA");
  std::string name = text == nullptr ? "" : text;
  std::transform(name.begin(), name.end(), name.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 32 : c; });
  return name;
}

Isa allowed_isa() {
  const std::string name = limit();
  if (name == "SSE41" || name == "AVX") return Isa::baseline;
  if (name.starts_with("AVX2")) return Isa::avx2;
  return Isa::avx512;
}

}  // namespace

Isa detect_isa() { return std::min(supported_isa(), allowed_isa()); }

bool multiplies_bf16() {
#if defined(__x86_64__)
  const std::string name = limit();
  for (const char* without : {"AVX512_MIC", "AVX512_MIC_4OPS", "AVX512_CORE", "AVX512_CORE_VNNI"})
    if (name == without) return false;
  return detect_isa() == Isa::avx512 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

bool multiplies_bytes() {
#if defined(__x86_64__)
  const std::string name = limit();
  for (const char* without : {"AVX512_MIC", "AVX512_MIC_4OPS", "AVX512_CORE"})
    if (name == without) return false;
  return detect_isa() == Isa::avx512 && __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

std::string_view name_of(Isa isa) {
  constexpr std::string_view names[] = {"baseline", "avx2", "avx512"};
  return names[static_cast<int>(isa)];
}

}  // namespace weft
