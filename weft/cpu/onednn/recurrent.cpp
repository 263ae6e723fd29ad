// lstm, gru and their gradients: per step one matrix product by oneDNN, whose weights were brought into its layout once
// for all steps, then one pass over the gates (native/recurrent_gates.h). With weights in bf16 that pass also rounds
// what the next product reads. Where oneDNN has no such product, and of weights in f16, it multiplies in f32.
#include <algorithm>
#include <array>

#include "weft/base/parallel.h"
#include "weft/cpu/native/elementwise/cast.h"
#include "weft/cpu/native/recurrent/recurrent_gates.h"
#include "weft/cpu/native/support/families.h"
#include "weft/cpu/onednn/families.h"

namespace weft::onednn {
namespace {

constexpr int64_t kGrain = 1024;  // elements of the hidden state that are worth a thread

/// rows [N,from] times the recurrent weights [G H,H], transposed or not, to [N,to].
class StepProduct {
 public:
  /// False where oneDNN has no implementation.
  bool prepare(const Request& request, int64_t batch, int64_t rows, int64_t columns, bool transpose) {
    weight_type_ = request.node.inputs[1].dtype;
    if (weight_type_ == DType::bf16 && prepare_in(dnnl_bf16, request, batch, rows, columns, transpose)) return true;
    return prepare_in(dnnl_f32, request, batch, rows, columns, transpose);
  }

  const std::string& implementation() const { return implementation_; }
  int64_t workspace_bytes() const {
    return packed_bytes_ + rounded_bytes_ +
           std::max(widened_bytes_ + pack_->workspace_bytes(), product_->workspace_bytes());
  }
  void pack(const void* weight, std::byte* workspace) {
    std::byte* scratch = workspace + packed_bytes_ + rounded_bytes_;
    if (widened_bytes_ > 0) {
      native::cast_range(weight_type_, DType::f32, detect_isa())(scratch, weight, 0, weights_);
      weight = scratch;
      scratch += widened_bytes_;
    }
    call(*pack_, std::array<const void*, 1>{weight}, workspace, scratch);
  }
  /// Before run(): row `n` of what it multiplies, where it rounds.
  void round(int64_t n, const float* row, std::byte* workspace) const {
    if (rounds()) round_(workspace + packed_bytes_ + 2 * n * from_, row, 0, from_);
  }
  bool rounds() const { return rounded_bytes_ > 0; }
  /// After pack(), on the same workspace.
  void run(const float* from, float* to, std::byte* workspace) {
    const void* rows = rounds() ? static_cast<const void*>(workspace + packed_bytes_) : from;
    call(*product_, std::array<const void*, 2>{rows, workspace}, to, workspace + packed_bytes_ + rounded_bytes_);
  }

 private:
  bool prepare_in(dnnl_data_type_t type, const Request& request, int64_t batch, int64_t rows, int64_t columns,
                  bool transpose) {
    const int64_t from = transpose ? columns : rows, to = transpose ? rows : columns;
    const MemoryDesc a = MemoryDesc::strided(type, {batch, from}, {from, 1});
    const MemoryDesc c = MemoryDesc::strided(dnnl_f32, {batch, to}, {to, 1});
    const MemoryDesc weight = MemoryDesc::strided(
        type, {from, to}, transpose ? std::vector<int64_t>{1, columns} : std::vector{columns, int64_t{1}});
    const PrimitiveDesc product = ask_matmul(*request.engine, a, MemoryDesc::any(type, {from, to}), c);
    if (!product) return false;
    const MemoryDesc packed = product.memory_desc(dnnl_query_weights_md);
    const PrimitiveDesc pack = ask_reorder(*request.engine, weight, packed);
    if (!pack) return false;
    product_ = request.new_kernel();
    product_->add_call(
        product, {{DNNL_ARG_SRC, a, input(0)}, {DNNL_ARG_WEIGHTS, packed, input(1)}, {DNNL_ARG_DST, c, output(0)}});
    pack_ = request.new_kernel();
    pack_->add_call(pack, {{DNNL_ARG_FROM, weight, input(0)}, {DNNL_ARG_TO, packed, output(0)}});
    from_ = from;
    weights_ = rows * columns;
    packed_bytes_ = align_up(packed.bytes());
    rounded_bytes_ = type == dnnl_bf16 ? align_up(byte_size(DType::bf16, batch * from)) : 0;
    widened_bytes_ = type == dnnl_f32 && weight_type_ != DType::f32 ? align_up(byte_size(DType::f32, weights_)) : 0;
    implementation_ = product.implementation();
    return true;
  }

  template <size_t count>
  static void call(CallKernel& kernel, const std::array<const void*, count>& inputs, void* to, std::byte* scratch) {
    const std::array<void*, 1> outputs{to};
    kernel.run({inputs, outputs, scratch});
  }

  native::CastRange round_ = native::cast_range(DType::f32, DType::bf16, detect_isa());
  DType weight_type_ = DType::f32;
  int64_t from_ = 0, weights_ = 0;  // columns of what is multiplied, and elements of the weights
  std::unique_ptr<CallKernel> product_, pack_;
  int64_t packed_bytes_ = 0, rounded_bytes_ = 0, widened_bytes_ = 0;
  std::string implementation_;
};

/// What the four kernels share: sizes, the order of the steps, the product and a buffer [N,buffer_columns] for its
/// results.
class Recurrence : public Kernel {
 public:
  Recurrence(const Request& request, const Shape& states, StepProduct product, int64_t buffer_columns)
      : steps_(states[0]),
        batch_(states[1]),
        width_(states[2]),
        threads_(request.threads),
        gates_(native::recurrent_gates(detect_isa())),
        product_(std::move(product)),
        buffer_bytes_(align_up(batch_ * buffer_columns * 4)),
        reverse_(request.node.attributes.boolean("reverse")),
        name_("onednn:" + product_.implementation() + "+" + request.node.op->name) {}
  std::string name() const override { return name_; }
  int64_t workspace_bytes() const override { return buffer_bytes_ + product_.workspace_bytes(); }

 protected:
  static const float* in(const KernelArguments& a, size_t i) { return static_cast<const float*>(a.inputs[i]); }
  static float* out(const KernelArguments& a, size_t i) { return static_cast<float*>(a.outputs[i]); }
  static float* buffer(const KernelArguments& a) { return static_cast<float*>(a.workspace); }
  std::byte* product_workspace(const KernelArguments& a) const {
    return static_cast<std::byte*>(a.workspace) + buffer_bytes_;
  }
  void pack(const KernelArguments& a) { product_.pack(a.inputs[1], product_workspace(a)); }
  /// Of what multiply() reads next: row `n`, and all rows.
  void keep(const KernelArguments& a, int64_t n, const float* row) const {
    product_.round(n, row, product_workspace(a));
  }
  void keep_all(const KernelArguments& a, const float* rows) const {
    for (int64_t n = 0; product_.rounds() && n < batch_; ++n) keep(a, n, rows + n * width_);
  }
  void multiply(const KernelArguments& a, const float* from, float* to) {
    product_.run(from, to, product_workspace(a));
  }

  /// The position in time of a step of the walk.
  int64_t time(int64_t step) const { return reverse_ ? steps_ - 1 - step : step; }
  /// The states [N,H] that a step starts from.
  const float* before(int64_t step, const float* states, const float* initial) const {
    return step == 0 ? initial : states + time(step - 1) * batch_ * width_;
  }
  /// body(n) for the rows of the batch.
  template <typename Body>
  void for_rows(Body&& body) const {
    parallel_for(threads_, batch_, std::max<int64_t>(1, kGrain / width_), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) body(n);
    });
  }

  const int64_t steps_, batch_, width_;
  const int threads_;
  const native::RecurrentGates& gates_;

 private:
  StepProduct product_;
  const int64_t buffer_bytes_;
  const bool reverse_;
  const std::string name_;
};

class Lstm final : public Recurrence {
 public:
  static constexpr int64_t kBuffer = 4;  // columns of the buffer over those of the state
  using Recurrence::Recurrence;
  void run(const KernelArguments& a) override {
    pack(a);
    keep_all(a, in(a, 3));
    for (int64_t step = 0; step < steps_; ++step) {
      multiply(a, before(step, out(a, 0), in(a, 3)), buffer(a));
      const float* cells = before(step, out(a, 1), in(a, 4));
      for_rows([&, first = time(step) * batch_](int64_t n) {
        const int64_t state = (first + n) * width_;
        gates_.lstm({width_, width_, in(a, 0) + 4 * state, buffer(a) + 4 * n * width_, in(a, 2), cells + n * width_,
                     out(a, 0) + state, out(a, 1) + state, out(a, 2) + 4 * state});
        keep(a, n, out(a, 0) + state);
      });
    }
  }
};

class LstmBackward final : public Recurrence {
 public:
  static constexpr int64_t kBuffer = 0;  // columns of the buffer over those of the state
  using Recurrence::Recurrence;
  void run(const KernelArguments& a) override {
    pack(a);
    // What the later steps pass back; at the end the gradients of the initial state.
    float *hidden_gradient = out(a, 1), *cell_gradient = out(a, 2);
    std::fill_n(hidden_gradient, batch_ * width_, 0.0f);
    std::fill_n(cell_gradient, batch_ * width_, 0.0f);
    for (int64_t step = steps_ - 1; step >= 0; --step) {
      const float* cells = before(step, in(a, 3), in(a, 2));
      for_rows([&, first = time(step) * batch_](int64_t n) {
        const int64_t state = (first + n) * width_, row = n * width_;
        gradient_gates_.lstm_backward({width_, in(a, 0) + state, a.inputs.size() > 5 ? in(a, 5) + state : nullptr,
                                       hidden_gradient + row, cells + row, in(a, 3) + state, in(a, 4) + 4 * state,
                                       cell_gradient + row, out(a, 0) + 4 * state});
        keep(a, n, out(a, 0) + 4 * state);
      });
      multiply(a, out(a, 0) + time(step) * batch_ * 4 * width_, hidden_gradient);
    }
  }

 private:
  const native::RecurrentGradientGates& gradient_gates_ = native::recurrent_gradient_gates(detect_isa());
};

class Gru final : public Recurrence {
 public:
  static constexpr int64_t kBuffer = 3;  // columns of the buffer over those of the state
  using Recurrence::Recurrence;
  void run(const KernelArguments& a) override {
    pack(a);
    keep_all(a, in(a, 4));
    for (int64_t step = 0; step < steps_; ++step) {
      const float* hidden = before(step, out(a, 0), in(a, 4));
      multiply(a, hidden, buffer(a));
      for_rows([&, first = time(step) * batch_](int64_t n) {
        const int64_t state = (first + n) * width_, row = n * width_;
        gates_.gru({width_, in(a, 0) + 3 * state, buffer(a) + 3 * row, in(a, 2), in(a, 3), hidden + row,
                    out(a, 0) + state, out(a, 1) + 4 * state});
        keep(a, n, out(a, 0) + state);
      });
    }
  }
};

class GruBackward final : public Recurrence {
 public:
  static constexpr int64_t kBuffer = 1;  // columns of the buffer over those of the state
  using Recurrence::Recurrence;
  void run(const KernelArguments& a) override {
    pack(a);
    float *hidden_gradient = out(a, 2), *through_gates = buffer(a);
    std::fill_n(hidden_gradient, batch_ * width_, 0.0f);
    std::fill_n(through_gates, batch_ * width_, 0.0f);
    for (int64_t step = steps_ - 1; step >= 0; --step) {
      const float* hidden = before(step, in(a, 3), in(a, 2));
      for_rows([&, first = time(step) * batch_](int64_t n) {
        const int64_t state = (first + n) * width_, row = n * width_;
        gradient_gates_.gru_backward({width_, in(a, 0) + state, through_gates + row, hidden + row, in(a, 4) + 4 * state,
                                      hidden_gradient + row, out(a, 0) + 3 * state, out(a, 1) + 3 * state});
        keep(a, n, out(a, 1) + 3 * state);
      });
      multiply(a, out(a, 1) + time(step) * batch_ * 3 * width_, through_gates);
    }
    for (int64_t i = 0; i < batch_ * width_; ++i) hidden_gradient[i] += through_gates[i];
  }

 private:
  const native::RecurrentGradientGates& gradient_gates_ = native::recurrent_gradient_gates(detect_isa());
};

/// The states [T,N,H] are the first output, or, in the backward pass, have the shape of the first input.
template <typename RecurrentKernel>
Factory make(int64_t gates, bool backward) {
  return [=](const Request& request, std::string& why_not) -> std::unique_ptr<Kernel> {
    if (!native::is_plain_recurrence(request.node, why_not)) return nullptr;
    const Shape& states = backward ? request.node.inputs[0].shape : request.node.outputs[0].shape;
    const int64_t width = states[2];
    StepProduct product;
    if (!product.prepare(request, states[1], gates * width, width, /*transpose=*/!backward))
      return declined(why_not, no_implementation(request.node));
    return std::make_unique<RecurrentKernel>(request, states, std::move(product), RecurrentKernel::kBuffer * width);
  };
}

}  // namespace

void add_recurrent(const Register& add) {
  add("lstm", make<Lstm>(4, false));
  add("gru", make<Gru>(3, false));
}

void add_recurrent_gradients(const Register& add) {
  add("lstm_backward", make<LstmBackward>(4, true));
  add("gru_backward", make<GruBackward>(3, true));
}

}  // namespace weft::onednn
