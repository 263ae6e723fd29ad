// The program `weft`.
#include "weft/base/wait_policy.h"
#include "weft/cli/run.h"

int main(int argc, char** argv) {
  const weft::SpinWatch watch;
  return weft::cli::run(argc, argv, weft::standard_library());
}
