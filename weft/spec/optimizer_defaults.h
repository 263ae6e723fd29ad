// The optimisers with what each uses where the recipe says nothing.
#pragma once

#include <string_view>

namespace weft::spec {

struct OptimizerDefaults {
  std::string_view name;
  double learning_rate, weight_decay, momentum;
};
inline constexpr OptimizerDefaults kOptimizers[] = {
    {"sgd", 0.05, 5e-4, 0.9}, {"adam", 1e-3, 0, 0.9},  {"adamw", 1e-3, 1e-2, 0.9}, {"lamb", 1e-3, 1e-2, 0.9},
    {"lars", 1, 1e-4, 0.9},   {"muon", 0.02, 0, 0.95}, {"rmsprop", 1e-3, 0, 0},
};

}  // namespace weft::spec
