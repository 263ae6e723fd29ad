// The transformer block (Vaswani et al. 2017) with its norms first, shared by language and vision models.
#pragma once

#include <string>

#include "weft/models/builder.h"

namespace weft::models {

struct TransformerSizes {
  int64_t batch = 1, length = 1, width = 128, heads = 4;
  double dropout = 0;  // of each of a block's two results
  bool causal = false;
  std::string norm = "norm";                      // the two norms are NAME.norm1 and NAME.norm2
  double epsilon = 1e-5;                          // of the norms
  int64_t experts = 0;                            // of NAME.mlp (mixture_of_experts.h); 0: it is one network
  double capacity_factor = 1.25, balance = 0.01;  // of the experts
  int64_t capacity = 0;                           // of the caches of keys and values, in tokens; 0: there are none
};

/// Error(usage) unless the heads divide the width.
void require_whole_heads(const std::string& model, int64_t width, int64_t heads);

/// x and the result are [batch*length, width]. NAME.attn.qkv, .attn.proj, .mlp.fc1, .mlp.fc2. With caches, the states
/// NAME.attn.keys and .attn.values [batch, heads, capacity, width / heads], and the scalar "position" of the first
/// token.
ValueId transformer_block(ModelBuilder& m, ValueId x, const std::string& name, const TransformerSizes& sizes);

}  // namespace weft::models
