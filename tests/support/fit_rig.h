// A small made-up data set, and everything that a training loop on it needs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/cpu/cpu_backend.h"
#include "weft/program/run_data.h"
#include "weft/spec/compile_options.h"
#include "weft/step/step.h"
#include "weft/train/fit.h"

namespace weft {

inline constexpr int64_t kSize = 16;  // pixels on a side

/// Images whose brightness says their class.
inline data::MemoryDataset make_data(int64_t samples) {
  std::vector<uint8_t> pixels, labels;
  for (int64_t sample = 0; sample < samples; ++sample) {
    labels.push_back(static_cast<uint8_t>(sample % 3));
    for (int64_t pixel = 0; pixel < kSize * kSize; ++pixel)
      pixels.push_back(static_cast<uint8_t>(60 * (sample % 3) + (pixel * 7 + sample * 13) % 40));
  }
  return data::MemoryDataset({"bright", {1, kSize, kSize}, 3, {}}, std::move(pixels), std::move(labels));
}

/// Everything that a loop needs, over one model.
class Rig {
 public:
  /// Without a device: on the CPU.
  explicit Rig(spec::RunSpec run_spec, int64_t samples = 100, const std::vector<std::string>& disabled_passes = {},
               std::shared_ptr<const Device> own_device = nullptr)
      : spec(std::move(run_spec)),
        library(standard_library()),
        device(own_device ? std::move(own_device) : std::make_shared<CpuBackend>(static_cast<int>(spec.threads))),
        backend(*device),
        options(spec::compile_options(spec, backend)),
        training_set(make_data(samples)),
        test_set(make_data(40)),
        description{training_set.info(), data::channel_statistics(training_set)},
        step(
            step::build_training_step(library, spec, program::model_input(description, spec::shapes_of(spec).front()))),
        training(
            [this](const spec::StepShape& shape) {
              ++builds;
              return step::build_training_step(library, spec, program::model_input(description, shape)).graph;
            },
            backend, without(options, disabled_passes)),
        evaluation(
            [this](const spec::StepShape& shape) {
              return step::build_evaluation_step(library, spec, program::model_input(description, shape));
            },
            backend, without(options, disabled_passes)),
        state(step::initial_state(step, static_cast<uint64_t>(spec.seed))),
        training_loader(training_set, program::training_loader_options(spec, description)),
        test_loader(test_set, program::evaluation_loader_options(spec, description)) {
    training.add_phases_of(step);
  }

  train::FitResult fit_from(const step::Position& position, const train::Hooks& hooks) {
    return train::fit({spec, training, evaluation, state, training_loader, &test_loader}, position, hooks);
  }
  std::vector<float> weights() const {
    std::vector<float> all;
    for (const std::string& name : state.names()) {
      const Tensor tensor = state.plain(name);
      all.insert(all.end(), tensor.data_as<float>(), tensor.data_as<float>() + tensor.elements());
    }
    return all;
  }

  static CompileOptions without(CompileOptions all, const std::vector<std::string>& disabled_passes) {
    all.passes.disabled.insert(all.passes.disabled.end(), disabled_passes.begin(), disabled_passes.end());
    return all;
  }

  spec::RunSpec spec;
  Library library;
  std::shared_ptr<const Device> device;
  const Device& backend;
  CompileOptions options;
  data::MemoryDataset training_set, test_set;
  spec::DataDescription description;
  step::TrainingStep step;
  int builds = 0;  // of training steps, to be compiled
  program::Program training, evaluation;
  State state;
  data::Loader training_loader, test_loader;
};

inline spec::RunSpec spec_for(const std::string& model, double epochs) {
  spec::RunSpec spec;
  spec.model.name = model;
  spec.epochs = epochs;
  spec.batch = 16;  // 6 steps an epoch; the test set of 40 ends in a batch of 8
  spec.threads = 2;
  spec.optimizer.learning_rate = 0.02;
  spec::resolve(spec);
  return spec;
}

/// Everything around the optimiser switched on.
inline spec::RunSpec full_spec(const std::string& optimizer, int64_t accumulate, double epochs) {
  spec::RunSpec spec = spec_for("lenet5", epochs);
  spec.optimizer.name = optimizer;
  spec.optimizer.learning_rate = 0;
  spec::resolve(spec);
  spec.batch = 16 / accumulate;
  spec.accumulate = accumulate;
  spec.clip = {.norm = 1, .value = 0.5};
  spec.ema.decay = 0.9;
  spec.lookahead.steps = 5;
  return spec;
}

}  // namespace weft
