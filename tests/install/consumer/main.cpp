// Enough of weft to need its headers, its library and what that depends on.
#include <cstdio>

#include "weft/ops/all.h"
#include "weft/runtime/cpu_backend.h"

int main() {
  const weft::OpRegistry registry = weft::ops::make_registry();
  const weft::CpuBackend backend(1);
  std::printf("weft has %zu ops and runs on %d thread\n", registry.all().size(), backend.threads());
  return registry.all().empty() ? 1 : 0;
}
