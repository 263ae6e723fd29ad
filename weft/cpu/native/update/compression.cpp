// The elements of largest magnitude, by counting bits of magnitudes rather than by sorting; and signs with their means.
#include "weft/cpu/native/update/compression.h"

#include <algorithm>
#include <cstring>

#include "weft/base/parallel.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

struct Loops {
  void (*pack_block)(const float* x, int64_t count, uint32_t* signs, float* means, float* rest);
  void (*unpack_block)(const uint32_t* signs, const float* means, int64_t count, bool is_first, float factor, float* y);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/update/compression_loops.h"
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

constexpr int64_t kGrain = 1 << 15;  // elements that are worth a thread

uint32_t magnitude(float x) { return __builtin_bit_cast(uint32_t, x) & 0x7fffffffu; }

/// Finds the k-th magnitude in two counts, of its upper and of its lower bits.
class TopKSelect : public Kernel {
 public:
  TopKSelect(int64_t elements, int64_t k, int threads)
      : elements_(elements),
        k_(k),
        threads_(threads),
        parts_(static_cast<int>(std::clamp<int64_t>(elements / kGrain, 1, threads))) {}
  std::string name() const override { return "native:top_k_select"; }
  int64_t workspace_bytes() const override { return parts_ * kBuckets * static_cast<int64_t>(sizeof(uint32_t)); }

  void run(const KernelArguments& a) override {
    const auto* x = static_cast<const float*>(a.inputs[0]);
    auto* counts = static_cast<uint32_t*>(a.workspace);
    const auto [upper, above] = find_bucket(counts, k_, [&](int64_t begin, int64_t end, uint32_t* own) {
      for (int64_t i = begin; i < end; ++i) ++own[magnitude(x[i]) >> kLowBits];
    });
    const auto [lower, above_in_bucket] =
        find_bucket(counts, k_ - above, [&, prefix = upper](int64_t begin, int64_t end, uint32_t* own) {
          for (int64_t i = begin; i < end; ++i)
            if (const uint32_t bits = magnitude(x[i]); bits >> kLowBits == prefix) ++own[bits & kLowMask];
        });
    const uint32_t threshold = upper << kLowBits | lower;
    const int64_t equal_wanted = k_ - above - above_in_bucket;
    struct Counts {
      int64_t larger, equal;
    };
    auto* of_parts = static_cast<Counts*>(a.workspace);
    for_parts([&](int part, int64_t begin, int64_t end) {
      Counts own{0, 0};
      for (int64_t i = begin; i < end; ++i) {
        const uint32_t bits = magnitude(x[i]);
        own.larger += bits > threshold ? 1 : 0;
        own.equal += bits == threshold ? 1 : 0;
      }
      of_parts[part] = own;
    });
    for_parts([&](int part, int64_t begin, int64_t end) {
      int64_t larger = 0, equal = 0;
      for (int before = 0; before < part; ++before) {
        larger += of_parts[before].larger;
        equal += of_parts[before].equal;
      }
      int64_t place = larger + std::min(equal, equal_wanted);
      auto* values = static_cast<float*>(a.outputs[0]);
      auto* indices = static_cast<int32_t*>(a.outputs[1]);
      auto* rest = static_cast<float*>(a.outputs[2]);
      for (int64_t i = begin; i < end; ++i) {
        const uint32_t bits = magnitude(x[i]);
        const bool is_selected = bits > threshold || (bits == threshold && equal++ < equal_wanted);
        rest[i] = is_selected ? 0.0f : x[i];
        if (!is_selected) continue;
        values[place] = x[i];
        indices[place++] = static_cast<int32_t>(i);
      }
    });
  }

 private:
  static constexpr int kLowBits = 15;
  static constexpr uint32_t kLowMask = (1u << kLowBits) - 1;
  static constexpr int64_t kBuckets = 1 << 16;

  template <typename Body>
  void for_parts(Body&& body) const {
    parallel_run(threads_, parts_, [&](int part, int parts) {
      const auto [begin, end] = split_range(elements_, part, parts);
      body(part, begin, end);
    });
  }

  struct Bucket {
    uint32_t index;
    int64_t above;  // elements in higher ones
  };
  /// The bucket of the element that is number `wanted` from above.
  template <typename Count>
  Bucket find_bucket(uint32_t* counts, int64_t wanted, Count&& count) const {
    for_parts([&](int part, int64_t begin, int64_t end) {
      uint32_t* const own = counts + part * kBuckets;
      std::memset(own, 0, kBuckets * sizeof(uint32_t));
      count(begin, end, own);
    });
    int64_t above = 0;
    for (int64_t bucket = kBuckets; bucket-- > 0;) {
      int64_t here = 0;
      for (int part = 0; part < parts_; ++part) here += counts[part * kBuckets + bucket];
      if (above + here >= wanted) return {static_cast<uint32_t>(bucket), above};
      above += here;
    }
    return {0, above};
  }

  const int64_t elements_, k_;
  const int threads_, parts_;
};

class PackSigns : public Kernel {
 public:
  PackSigns(int64_t elements, int64_t block, int threads, const Loops& loops)
      : loops_(loops), elements_(elements), block_(block), threads_(threads) {}
  std::string name() const override { return "native:pack_signs"; }

  void run(const KernelArguments& a) override {
    const auto* x = static_cast<const float*>(a.inputs[0]);
    auto* signs = static_cast<uint32_t*>(a.outputs[0]);
    auto* means = static_cast<float*>(a.outputs[1]);
    auto* rest = static_cast<float*>(a.outputs[2]);
    parallel_for(threads_, (elements_ + block_ - 1) / block_, kGrain / block_, [&](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block) {
        const int64_t begin = block * block_, count = std::min(block_, elements_ - begin);
        loops_.pack_block(x + begin, count, signs + begin / 32, means + 2 * block, rest + begin);
      }
    });
  }

 private:
  const Loops& loops_;
  const int64_t elements_, block_;
  const int threads_;
};

class UnpackSigns : public Kernel {
 public:
  UnpackSigns(const NodeSignature& node, int threads, const Loops& loops)
      : loops_(loops),
        elements_(node.outputs[0].elements()),
        block_(node.attributes.integer("block")),
        ranks_(node.attributes.integer("ranks")),
        words_(node.inputs[0].elements() / ranks_),
        blocks_(node.inputs[1].elements() / 2 / ranks_),
        threads_(threads) {}
  std::string name() const override { return "native:unpack_signs"; }

  void run(const KernelArguments& a) override {
    const auto* signs = static_cast<const uint32_t*>(a.inputs[0]);
    const auto* means = static_cast<const float*>(a.inputs[1]);
    auto* y = static_cast<float*>(a.outputs[0]);
    parallel_for(threads_, blocks_, kGrain / block_, [&](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block) {
        const int64_t begin = block * block_, count = std::min(block_, elements_ - begin);
        for (int64_t rank = 0; rank < ranks_; ++rank)
          loops_.unpack_block(signs + rank * words_ + begin / 32, means + 2 * (rank * blocks_ + block), count,
                              rank == 0, rank + 1 == ranks_ ? 1.0f / static_cast<float>(ranks_) : 1.0f, y + begin);
      }
    });
  }

 private:
  const Loops& loops_;
  const int64_t elements_, block_, ranks_, words_, blocks_;
  const int threads_;
};

/// Registers a kernel for plain operands.
template <typename Make>
void add_for_plain(KernelTable& table, const char* op, Make make) {
  table.add(op, {"native",
                 [make](const NodeSignature& node, const KernelOptions& options,
                        std::string& why_not) -> std::unique_ptr<Kernel> {
                   if (!all_plain(node, why_not)) return nullptr;
                   return make(node, options.threads);
                 }});
}

}  // namespace

void add_compression(KernelTable& table, Isa isa) {
  add_for_plain(table, "top_k_select", [](const NodeSignature& node, int threads) {
    return std::make_unique<TopKSelect>(node.inputs[0].elements(), node.attributes.integer("k"), threads);
  });
  add_for_plain(table, "pack_signs", [isa](const NodeSignature& node, int threads) {
    return std::make_unique<PackSigns>(node.inputs[0].elements(), node.attributes.integer("block"), threads,
                                       loops_for(isa));
  });
  add_for_plain(table, "unpack_signs", [isa](const NodeSignature& node, int threads) {
    return std::make_unique<UnpackSigns>(node, threads, loops_for(isa));
  });
}

}  // namespace weft::native
