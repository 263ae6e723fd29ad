// A layer of several feed-forward networks, of which each token takes one (Switch Transformer: Fedus, Zoph, Shazeer
// 2021).
#pragma once

#include <string>

#include "weft/models/builder.h"

namespace weft::models {

struct ExpertSizes {
  int64_t experts = 8;
  int64_t width = 128;            // of a token
  int64_t hidden = 512;           // of an expert's layer between
  double capacity_factor = 1.25;  // how many tokens an expert takes, over an even share of them
  double balance = 0.01;          // factor of the balancing loss, in training
};

/// How many of `rows` tokens an expert takes at most: an even share times the factor (section 2.2), and 4 at least, so
/// that few tokens find room.
int64_t expert_capacity(int64_t rows, int64_t experts, double factor);

/// x and the result are [rows, width]. The router NAME.router.weight [experts, width] gives each token probabilities of
/// the experts; the likeliest expert computes, and its probability multiplies what it gives. An expert that is full
/// leaves further tokens out, in the order of their rows: their result is 0. Experts are NAME.fc1.weight [experts,
/// hidden, width], .fc1.bias [experts, hidden], .fc2.weight [experts, width, hidden], .fc2.bias [experts, width]. In
/// training the model's extra loss grows by balance * experts * sum over experts of (share of tokens) (mean
/// probability), equation 4.
/// Where ranks divide the experts (ModelInput::expert_ranks), each sends its tokens to the ranks that have their
/// experts and gets the results back, by all_to_all. Routes, capacities and the balancing loss are those of its own
/// tokens: a group in the sense of GShard (Lepikhin et al. 2020). Error(usage) where they cannot be divided evenly.
ValueId mixture_of_experts(ModelBuilder& m, ValueId x, const std::string& name, const ExpertSizes& sizes);

}  // namespace weft::models
