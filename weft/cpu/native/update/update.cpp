// The updates, squared_norm and unscale_gradient: one pass over the storage, in any layout that the operands share.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "weft/base/parallel.h"
#include "weft/cpu/native/support/families.h"
#include "weft/cpu/native/update/product_update.h"
#include "weft/graph/accumulation.h"
#include "weft/ops/ranks/tree_sum.h"

namespace weft::native {

namespace {

struct SgdRange {
  const float *parameter, *gradient, *velocity;
  float *next_parameter, *next_velocity;
  int64_t count;
  float learning_rate, momentum, weight_decay;
  bool nesterov;
};

struct AdamWRange {
  const float *parameter, *gradient, *first, *second;
  float *next_parameter, *next_first, *next_second;
  int64_t count;
  float beta1, beta2, rest1, rest2, epsilon;
  float l2;            // this times the parameter joins the gradient
  float keep;          // 1 - learning rate * decoupled weight decay
  float step_size;     // learning rate / (1 - beta1^t)
  float second_scale;  // 1 / sqrt(1 - beta2^t)
};

struct Loops {
  void (*sgd)(const SgdRange&);
  void (*adamw)(const AdamWRange&);
  void (*average)(const float* running, const float* sample, float* next, float keep, float take, int64_t count);
  void (*blend)(const float* state, const float* value, float* next, float keep, float take, int64_t count);
  void (*scale)(const float* x, float* next, float factor, int64_t count);
  void (*add)(const float* a, const float* b, float* next, int64_t count);
  double (*squares)(const float* x, int64_t count);
  uint32_t (*unscale)(const float* x, float* next, float factor, int64_t count);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/update/update_loops.h"
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

constexpr int64_t kGrain = 16384;  // elements below which a second thread costs more than it brings

const float* input(const KernelArguments& arguments, size_t index) {
  return static_cast<const float*>(arguments.inputs[index]);
}
float* output(const KernelArguments& arguments, size_t index) { return static_cast<float*>(arguments.outputs[index]); }

/// The results are to be the states as they are, where the operand that says so is there and 0.
bool is_skipped(const KernelArguments& a, size_t apply) { return a.inputs.size() > apply && *input(a, apply) == 0; }

void leave_state(const KernelArguments& a, size_t from, size_t to, int64_t count) {
  if (a.outputs[to] != a.inputs[from])
    std::memcpy(a.outputs[to], a.inputs[from], static_cast<size_t>(count) * sizeof(float));
}

class SgdUpdate : public Kernel {
 public:
  SgdUpdate(const NodeSignature& node, int threads, Isa isa)
      : count_(storage_elements(node.inputs[0].shape, node.inputs[0].layout)),
        threads_(threads),
        momentum_(static_cast<float>(node.attributes.real("momentum"))),
        weight_decay_(static_cast<float>(node.attributes.real("weight_decay"))),
        nesterov_(node.attributes.boolean("nesterov")),
        loops_(loops_for(isa)) {}
  std::string name() const override { return "native:sgd_update"; }
  void run(const KernelArguments& a) override {
    if (is_skipped(a, 4)) {
      leave_state(a, 0, 0, count_);
      return leave_state(a, 2, 1, count_);
    }
    const float learning_rate = *input(a, 3);
    parallel_for(threads_, count_, kGrain, [&](int64_t begin, int64_t end) {
      loops_.sgd({input(a, 0) + begin, input(a, 1) + begin, input(a, 2) + begin, output(a, 0) + begin,
                  output(a, 1) + begin, end - begin, learning_rate, momentum_, weight_decay_, nesterov_});
    });
  }

 private:
  const int64_t count_;
  const int threads_;
  const float momentum_, weight_decay_;
  const bool nesterov_;
  const Loops& loops_;
};

class AdamWUpdate : public Kernel {
 public:
  AdamWUpdate(const NodeSignature& node, int threads, Isa isa)
      : count_(storage_elements(node.inputs[0].shape, node.inputs[0].layout)),
        threads_(threads),
        beta1_(node.attributes.real("beta1")),
        beta2_(node.attributes.real("beta2")),
        epsilon_(node.attributes.real("epsilon")),
        l2_(node.attributes.boolean("decoupled") ? 0 : node.attributes.real("weight_decay")),
        weight_decay_(node.attributes.boolean("decoupled") ? node.attributes.real("weight_decay") : 0),
        loops_(loops_for(isa)) {}
  std::string name() const override { return "native:adamw_update"; }
  void run(const KernelArguments& a) override {
    if (is_skipped(a, 6)) {
      leave_state(a, 0, 0, count_);
      leave_state(a, 2, 1, count_);
      return leave_state(a, 3, 2, count_);
    }
    const auto learning_rate = static_cast<double>(*input(a, 4));
    const double time = static_cast<double>(*static_cast<const int64_t*>(a.inputs[5])) + 1;
    const auto keep = static_cast<float>(1 - learning_rate * weight_decay_);
    const auto step_size = static_cast<float>(learning_rate / (1 - std::pow(beta1_, time)));
    const auto second_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2_, time)));
    parallel_for(threads_, count_, kGrain, [&](int64_t begin, int64_t end) {
      loops_.adamw({input(a, 0) + begin, input(a, 1) + begin, input(a, 2) + begin, input(a, 3) + begin,
                    output(a, 0) + begin, output(a, 1) + begin, output(a, 2) + begin, end - begin,
                    static_cast<float>(beta1_), static_cast<float>(beta2_), static_cast<float>(1 - beta1_),
                    static_cast<float>(1 - beta2_), static_cast<float>(epsilon_), static_cast<float>(l2_), keep,
                    step_size, second_scale});
    });
  }

 private:
  const int64_t count_;
  const int threads_;
  const double beta1_, beta2_, epsilon_, l2_, weight_decay_;
  const Loops& loops_;
};

class RunningAverage : public Kernel {
 public:
  RunningAverage(const NodeSignature& node, int threads, Isa isa)
      : count_(storage_elements(node.inputs[0].shape, node.inputs[0].layout)),
        threads_(threads),
        keep_(static_cast<float>(1 - node.attributes.real("momentum"))),
        take_(static_cast<float>(node.attributes.real("momentum") * node.attributes.real("sample_factor"))),
        loops_(loops_for(isa)) {}
  std::string name() const override { return "native:running_average"; }
  void run(const KernelArguments& a) override {
    parallel_for(threads_, count_, kGrain, [&](int64_t begin, int64_t end) {
      loops_.average(input(a, 0) + begin, input(a, 1) + begin, output(a, 0) + begin, keep_, take_, end - begin);
    });
  }

 private:
  const int64_t count_;
  const int threads_;
  const float keep_, take_;
  const Loops& loops_;
};

/// Of accumulate_update too, whose fifth operand is about what follows.
class BlendUpdate : public Kernel {
 public:
  BlendUpdate(const NodeSignature& node, int threads, Isa isa)
      : name_("native:" + node.op->name),
        count_(storage_elements(node.inputs[0].shape, node.inputs[0].layout)),
        has_condition_(node.op->name != kAccumulate),
        threads_(threads),
        loops_(loops_for(isa)) {}
  std::string name() const override { return name_; }
  void run(const KernelArguments& a) override {
    if (has_condition_ && is_skipped(a, 4)) return leave_state(a, 0, 0, count_);
    const float keep = *input(a, 2), take = *input(a, 3);
    if (take == 0 && keep == 1 && a.inputs[0] == a.outputs[0]) return;  // stays as it is
    parallel_for(threads_, count_, kGrain, [&](int64_t begin, int64_t end) {
      const float *state = input(a, 0) + begin, *value = input(a, 1) + begin;
      float* next = output(a, 0) + begin;
      if (keep == 0)
        loops_.scale(value, next, take, end - begin);
      else if (take == 0)
        loops_.scale(state, next, keep, end - begin);
      else
        loops_.blend(state, value, next, keep, take, end - begin);
    });
  }

 private:
  const std::string name_;
  const int64_t count_;
  const bool has_condition_;
  const int threads_;
  const Loops& loops_;
};

class TreeSumUpdate : public Kernel {
 public:
  TreeSumUpdate(const NodeSignature& node, int threads, Isa isa)
      : count_(storage_elements(node.inputs[0].shape, node.inputs[0].layout)),
        partials_(static_cast<int>(node.outputs.size())),
        threads_(threads),
        loops_(loops_for(isa)) {}
  std::string name() const override { return "native:tree_sum_update"; }
  void run(const KernelArguments& a) override {
    const auto [joined, target] = ops::tree_sum_step(*static_cast<const int64_t*>(a.inputs[1]), partials_);
    parallel_for(threads_, count_, kGrain, [&, joined = joined, target = target](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at += kBlock) sum_block(a, joined, target, at, std::min(kBlock, end - at));
    });
    for (int partial = 0; partial < partials_; ++partial)
      if (partial != target) leave_state(a, static_cast<size_t>(partial) + 2, static_cast<size_t>(partial), count_);
  }

 private:
  static constexpr int64_t kBlock = 2048;  // stays in the first cache

  void sum_block(const KernelArguments& a, int joined, int target, int64_t at, int64_t count) const {
    const float* sum = input(a, 0) + at;
    float* next = output(a, static_cast<size_t>(target)) + at;
    if (joined == 0) std::memcpy(next, sum, static_cast<size_t>(count) * sizeof(float));
    float carried[kBlock];
    for (int partial = 0; partial < joined; ++partial) {
      float* to = partial + 1 == joined ? next : carried;
      loops_.add(input(a, static_cast<size_t>(partial) + 2) + at, sum, to, count);
      sum = to;
    }
  }

  const int64_t count_;
  const int partials_, threads_;
  const Loops& loops_;
};

/// The padding of a layout holds zeros and adds nothing.
class SquaredNorm : public Kernel {
 public:
  SquaredNorm(const NodeSignature& node, int threads, Isa isa)
      : count_(storage_elements(node.inputs[0].shape, node.inputs[0].layout)),
        threads_(threads),
        parts_(static_cast<int>(std::clamp<int64_t>(count_ / kGrain, 1, threads))),
        loops_(loops_for(isa)) {}
  std::string name() const override { return "native:squared_norm"; }
  int64_t workspace_bytes() const override { return parts_ * 8; }
  void run(const KernelArguments& a) override {
    auto* partial = static_cast<double*>(a.workspace);
    std::fill(partial, partial + parts_, 0.0);
    parallel_run(threads_, parts_, [&](int part, int parts) {
      const auto [begin, end] = split_range(count_, part, parts);
      partial[part] = loops_.squares(input(a, 0) + begin, end - begin);
    });
    double sum = 0;
    for (int part = 0; part < parts_; ++part) sum += partial[part];
    *output(a, 0) = static_cast<float>(sum);
  }

 private:
  const int64_t count_;
  const int threads_, parts_;
  const Loops& loops_;
};

/// The padding of a layout holds zeros, which stay zeros.
class UnscaleGradient : public Kernel {
 public:
  UnscaleGradient(const NodeSignature& node, int threads, Isa isa)
      : count_(storage_elements(node.inputs[0].shape, node.inputs[0].layout)),
        threads_(threads),
        parts_(static_cast<int>(std::clamp<int64_t>(count_ / kGrain, 1, threads))),
        loops_(loops_for(isa)) {}
  std::string name() const override { return "native:unscale_gradient"; }
  int64_t workspace_bytes() const override { return parts_ * 4; }
  void run(const KernelArguments& a) override {
    auto* overflows = static_cast<uint32_t*>(a.workspace);
    std::fill(overflows, overflows + parts_, 0u);
    const float factor = 1 / *input(a, 1);
    parallel_run(threads_, parts_, [&](int part, int parts) {
      const auto [begin, end] = split_range(count_, part, parts);
      overflows[part] = loops_.unscale(input(a, 0) + begin, output(a, 0) + begin, factor, end - begin);
    });
    *output(a, 1) = std::all_of(overflows, overflows + parts_, [](uint32_t overflow) { return overflow == 0; }) ? 1 : 0;
  }

 private:
  const int64_t count_;
  const int threads_, parts_;
  const Loops& loops_;
};

/// The first `tensors` inputs and all outputs must be f32 in one layout: the loops run over storage.
bool share_storage(const NodeSignature& node, size_t tensors, std::string& why_not) {
  const TensorType& first = node.inputs[0];
  const auto fits = [&](const TensorType& type) {
    if (type.dtype == DType::f32 && type.layout == first.layout) return true;
    why_not = fmt::format("operand {} is not f32 in the layout of {}", to_string(type), to_string(first));
    return false;
  };
  for (size_t index = 0; index < tensors; ++index)
    if (!fits(node.inputs[index])) return false;
  for (const TensorType& type : node.outputs)
    if (!fits(type)) return false;
  return true;
}

template <typename Update>
void add(KernelTable& table, const char* op, size_t tensors, Isa isa) {
  table.add(op, {"native",
                 [tensors, isa](const NodeSignature& node, const KernelOptions& options,
                                std::string& why_not) -> std::unique_ptr<Kernel> {
                   if (!share_storage(node, tensors, why_not)) return nullptr;
                   return std::make_unique<Update>(node, options.threads, isa);
                 }});
}

}  // namespace

void add_update(KernelTable& table, Isa isa) {
  add<SgdUpdate>(table, "sgd_update", 3, isa);
  add<AdamWUpdate>(table, "adamw_update", 4, isa);
  add<RunningAverage>(table, "running_average", 2, isa);
  add<BlendUpdate>(table, "blend_update", 2, isa);
  add<BlendUpdate>(table, kAccumulate, 2, isa);
  add_product_update(table, isa);
  table.add("tree_sum_update", {"native",
                                [isa](const NodeSignature& node, const KernelOptions& options,
                                      std::string& why_not) -> std::unique_ptr<Kernel> {
                                  for (size_t operand = 2; operand < node.inputs.size(); ++operand)
                                    if (node.inputs[operand] != node.inputs[0])
                                      return declined(why_not, "the value has another layout than its sum");
                                  return std::make_unique<TreeSumUpdate>(node, options.threads, isa);
                                }});
  table.add("squared_norm", {"native",
                             [isa](const NodeSignature& node, const KernelOptions& options,
                                   std::string& why_not) -> std::unique_ptr<Kernel> {
                               if (node.inputs[0].dtype != DType::f32) return declined(why_not, "the input is not f32");
                               return std::make_unique<SquaredNorm>(node, options.threads, isa);
                             }});
  table.add("unscale_gradient", {"native",
                                 [isa](const NodeSignature& node, const KernelOptions& options,
                                       std::string& why_not) -> std::unique_ptr<Kernel> {
                                   if (node.inputs[0] != node.outputs[0])
                                     return declined(why_not, "the gradient's layout changes");
                                   return std::make_unique<UnscaleGradient>(node, options.threads, isa);
                                 }});
}

}  // namespace weft::native
