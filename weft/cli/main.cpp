// The program `weft`.
#include "weft/cli/run.h"

int main(int argc, char** argv) { return weft::cli::run(argc, argv, weft::standard_library()); }
