// Dropout (Srivastava et al. 2014), its mask a pure function of (seed, step, stream, position).
#include "weft/base/rng.h"
#include "weft/cpu/reference/reference.h"

namespace weft::reference {
namespace {

Body prepare_dropout(const NodeSignature& node) {
  const int64_t elements = node.inputs[0].elements();
  const double probability = node.attributes.real("probability");
  const auto stream = static_cast<uint64_t>(node.attributes.integer("stream"));
  const std::vector<int64_t> blocks = node.attributes.integers("blocks"), parts = node.attributes.integers("parts");
  return [=](const KernelArguments& call) {
    const uint64_t key = mix(static_cast<uint64_t>(*input<int64_t>(call, 1)), stream);
    const auto step = static_cast<uint64_t>(*input<int64_t>(call, 2));
    for (int64_t i = 0; i < elements; ++i) {
      int64_t at = i;  // in the whole tensor
      for (size_t split = 0; split < blocks.size(); ++split)
        at =
            (at / blocks[split] * parts[split] + *input<int64_t>(call, 3 + split)) * blocks[split] + at % blocks[split];
      const auto words = philox(key, step, static_cast<uint64_t>(at / 4));
      const bool dropped = static_cast<double>(uniform_from_bits(words[static_cast<size_t>(at % 4)])) < probability;
      output(call, 0)[i] =
          dropped ? 0.0f : static_cast<float>(static_cast<double>(input(call, 0)[i]) / (1 - probability));
    }
  };
}

}  // namespace

void add_random(KernelTable& table) { add_plain(table, "dropout", prepare_dropout); }

}  // namespace weft::reference
