// policy.json: what a run has measured before its first step to choose the values that its recipe left open as `auto`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "weft/predict/noise_scale.h"
#include "weft/run/policies/range_test.h"

namespace weft::run {

struct Policies {
  double learning_rate = 0;             // of the run, chosen or given
  int64_t batch = 0;                    // likewise
  int64_t warmup_steps = 0;             // likewise
  std::optional<RangeTest> range = {};  // where the learning rate was left open
  std::optional<predict::NoiseScale> noise = {};
  int64_t measured_samples = 0;  // that the measurements have computed gradients of
  int64_t run_samples = 0;       // of the run itself
};

std::string print_policies(const Policies& policies);
/// nullopt where the run left nothing open. Error(data) where the file is damaged.
std::optional<Policies> read_policies(const std::filesystem::path& file);

/// Lines for users: what was chosen, and why.
std::string describe_policies(const Policies& policies);

}  // namespace weft::run
