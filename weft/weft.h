// All that a program on weft needs. docs/api.md is the tour, examples/ has the programs that go with it.
//
//   weft          tensors, graphs, gradients, compiling, running; Library: what a recipe can name
//   weft::ops     functions that add ops to a graph
//   weft::models  layers with parameters, and the models that come with weft
//   weft::data    data sets and the loader that makes batches of them
//   weft::spec    a run as data: recipes and their keys
//   weft::step    the graphs of a training step
//   weft::program compiled steps over a State, and the driver that runs them
//   weft::train   the loop: fitting, evaluating, stopping on a signal
//   weft::infer   predictions of trained models
//   weft::tune    searches: of any function, and studies of recipes
//   weft::run     run directories: start and resume, checkpoints, summaries
//   weft::cli     the program `weft` over a library of one's own
#pragma once

#include "weft/autodiff/autodiff.h"
#include "weft/base/exception.h"
#include "weft/base/parallel.h"
#include "weft/base/rng.h"
#include "weft/cli/run.h"
#include "weft/compile/compile.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/data/dataset/data_spec.h"
#include "weft/data/dataset/dataset.h"
#include "weft/data/load/loader.h"
#include "weft/data/open_dataset.h"
#include "weft/device/function_kernel.h"
#include "weft/device/state.h"
#include "weft/graph/graph.h"
#include "weft/infer/prediction.h"
#include "weft/library/check_op.h"
#include "weft/library/entries.h"
#include "weft/library/library.h"
#include "weft/models/builder.h"
#include "weft/models/model.h"
#include "weft/models/options.h"
#include "weft/ops/all.h"
#include "weft/ops/define.h"
#include "weft/ops/ops.h"
#include "weft/run/checkpoint/store.h"
#include "weft/run/run.h"
#include "weft/run/run_directory.h"
#include "weft/runtime/executor.h"
#include "weft/runtime/interpret.h"
#include "weft/spec/recipe.h"
#include "weft/spec/run_spec.h"
#include "weft/step/optimizers/update_builder.h"
#include "weft/step/schedules/schedule.h"
#include "weft/tensor/safetensors.h"
#include "weft/tensor/tensor.h"
#include "weft/train/evaluate.h"
#include "weft/train/interrupt.h"
#include "weft/tune/search.h"
