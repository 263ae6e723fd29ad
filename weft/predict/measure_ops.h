// Measures ops where they are used: in steps of models on random batches, each node by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "weft/device/op_times.h"
#include "weft/library/library.h"
#include "weft/program/planned_step.h"

namespace weft::predict {

/// What measuring one step has found.
struct MeasuredStep {
  std::string name;         // "resnet18, batch 16, bf16"
  double step_seconds = 0;  // the median of whole steps
  int64_t nodes = 0, runs = 0;
  int64_t companion_runs = 0;  // of the rank beside it that ran the fewest meanwhile
  std::string left_out = {};   // why it was not measured; empty: it was
};

struct MeasureOptions {
  double most_seconds = 120;  // for all steps together; a step that does not fit into what is left is left out
  int64_t fewest_runs = 3, most_runs = 20;
  int64_t ranks = 1;  // that compute the same at once, as those of one host do: they share its memory and its power
  std::function<void(size_t done, size_t all, const MeasuredStep& step)> progress = {};
};

/// The steps run in this process, whose threads take the part of other ranks, each as the first of the ranks runs it: a
/// choice's batch is that of one rank. Steps whose time is predicted to be the shortest are measured first, so
/// that time that runs out leaves out the longest. Needs a second or two beside that, for the rates of the machine.
struct MeasuredOps {
  OpTimes times;
  std::vector<MeasuredStep> steps;
};
MeasuredOps measure_ops(const Library& library, const std::vector<program::StepChoice>& choices,
                        const MeasureOptions& options);

}  // namespace weft::predict
