// The entry point that libFuzzer calls; WEFT_FUZZ_TARGET names the parser.
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::fuzz::accepts({"", weft::fuzz::WEFT_FUZZ_TARGET}, {data, size});
  return 0;
}
