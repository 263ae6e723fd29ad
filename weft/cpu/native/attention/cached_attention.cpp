// cached_attention: the new rows join the caches, and every query walks over the rows that it may see. A head's rows
// lie one after the other, so that a thread reads memory in order.
#include <algorithm>
#include <cstring>
#include <limits>

#include "weft/base/parallel.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

struct Loops {
  void (*attend)(const float* q, const float* keys, const float* values, int64_t seen, int64_t width, float scale,
                 float* weights, float* y);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/attention/cached_attention_loops.h"
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

constexpr int64_t kGrain = 1 << 14;  // numbers of keys and values that are worth a thread

class CachedAttention : public Kernel {
 public:
  CachedAttention(const NodeSignature& node, int threads, const Loops& loops)
      : loops_(loops),
        threads_(threads),
        heads_(node.inputs[0].shape[0] * node.inputs[0].shape[1]),
        count_(node.inputs[0].shape[2]),
        width_(node.inputs[0].shape[3]),
        capacity_(node.inputs[3].shape[2]),
        scale_(static_cast<float>(node.attributes.real("scale"))) {}
  std::string name() const override { return "native:cached_attention"; }
  int64_t workspace_bytes() const override { return threads_ * capacity_ * static_cast<int64_t>(sizeof(float)); }

  void run(const KernelArguments& a) override {
    // Before the cache there are no rows: nothing is written, and no query sees any. Behind it, however far, likewise.
    const int64_t given = *a.input<int64_t>(5), position = given < 0 ? capacity_ : std::min(given, capacity_);
    const int64_t kept = std::clamp<int64_t>(capacity_ - position, 0, count_);
    for (const size_t cache : {size_t{1}, size_t{2}})
      write_rows(a.input<float>(cache), a.input<float>(cache + 2), a.output<float>(cache), position, kept);
    const int64_t work = 2 * heads_ * count_ * std::min(capacity_, position + count_) * width_;
    const int workers = static_cast<int>(std::clamp<int64_t>(work / kGrain, 1, threads_));
    parallel_run(threads_, workers, [&](int worker, int all) {
      float* const weights = static_cast<float*>(a.workspace) + worker * capacity_;
      const auto [begin, end] = split_range(heads_ * count_, worker, all);
      for (int64_t row = begin; row < end; ++row) attend_row(a, row, position, weights);
    });
  }

 private:
  void write_rows(const float* added, const float* before, float* cache, int64_t position, int64_t kept) const {
    const int64_t head = capacity_ * width_;
    if (before != cache) std::memcpy(cache, before, static_cast<size_t>(heads_ * head) * sizeof(float));
    for (int64_t at = 0; at < heads_; ++at)
      std::memcpy(cache + at * head + position * width_, added + at * count_ * width_,
                  static_cast<size_t>(kept * width_) * sizeof(float));
  }

  void attend_row(const KernelArguments& a, int64_t row, int64_t position, float* weights) const {
    const int64_t cache = row / count_ * capacity_ * width_, seen = position + row % count_ + 1;
    float* const y = a.output<float>(0) + row * width_;
    if (seen > capacity_)
      std::fill_n(y, width_, std::numeric_limits<float>::quiet_NaN());
    else
      loops_.attend(a.input<float>(0) + row * width_, a.output<float>(1) + cache, a.output<float>(2) + cache, seen,
                    width_, scale_, weights, y);
  }

  const Loops& loops_;
  const int threads_;
  const int64_t heads_, count_, width_, capacity_;
  const float scale_;
};

/// All f32 and plain but for the position.
bool is_served(const NodeSignature& node, std::string& why_not) {
  NodeSignature floats = node;
  floats.inputs.pop_back();
  return all_plain_f32(floats, why_not);
}

}  // namespace

void add_cached_attention(KernelTable& table, Isa isa) {
  table.add("cached_attention", {"native",
                                 [isa](const NodeSignature& node, const KernelOptions& options,
                                       std::string& why_not) -> std::unique_ptr<Kernel> {
                                   if (!is_served(node, why_not)) return nullptr;
                                   return std::make_unique<CachedAttention>(node, options.threads, loops_for(isa));
                                 }});
}

}  // namespace weft::native
