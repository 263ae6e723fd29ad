// What a run will take, from its plans and some measured steps on random batches.
#pragma once

#include <cstdint>
#include <string>

#include "weft/program/prepared_run.h"

namespace weft::program {

/// Of one step, or of many: without other processes on these cores, and as it was while it was measured.
struct Duration {
  double alone = 0, now = 0;  // seconds
  void add(const Duration& other, double times) {
    alone += times * other.alone;
    now += times * other.now;
  }
};

/// "about 2m 10s", and beside it what it takes while other processes use the cores.
std::string in_words(const Duration& duration);

struct Forecast {
  Duration step;                 // the mean over the run's steps
  Duration run;                  // all steps and evaluations; the start of the program and checkpoints come on top
  int64_t steps = 0;             // if nothing ends the run before its last epoch
  int64_t checkpoint_bytes = 0;  // of each
};

/// Runs some steps of every shape, for up to about `seconds` each, and evaluations likewise. The process must be alone.
Forecast forecast(PreparedRun& run, double seconds);

/// How often a run of so many steps evaluates its test part, or its validation part.
double evaluations_of(const spec::RunSpec& spec, bool of_test, int64_t steps);

}  // namespace weft::program
