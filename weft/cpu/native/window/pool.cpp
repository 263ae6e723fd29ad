// max_pool2d, avg_pool2d and their gradients, plane by plane: a plane is one image's block of channels (blocked
// layouts), all its channels (channels last) or one channel (plain).
#include <fmt/format.h>

#include "weft/base/parallel.h"
#include "weft/cpu/native/support/channel_view.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

struct Window {
  int64_t height, width, out_height, out_width;
  int64_t channels;  // adjacent in memory
  int64_t kernel[2], stride[2], padding[2];
  bool count_padding = true;  // averages only
};

/// T: what images consist of.
template <typename T>
struct Loops {
  void (*maximum)(const Window&, const T* x, T* y);
  void (*maximum_of_quads)(const Window&, const T* x, T* y);  // windows of 2 x 2, stride 2 and no padding
  void (*average)(const Window&, const T* x, T* y);
};
/// Of the gradients. `rows`: room for as many rows of the large image, in f32, as a window is high.
template <typename T>
struct GradientLoops {
  void (*maximum)(const Window&, const T* dy, const T* x, const T* y, T* dx, float* rows);
  void (*maximum_of_quads)(const Window&, const T* dy, const T* x, const T* y, T* dx);
  void (*average)(const Window&, const T* dy, T* dx, float* rows);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/window/pool_loops.h"
#define WEFT_LOOPS_PER_TYPE
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

bool is_quad(const Window& w) {
  return w.kernel[0] == 2 && w.kernel[1] == 2 && w.stride[0] == 2 && w.stride[1] == 2 && w.padding[0] == 0 &&
         w.padding[1] == 0;
}

/// In a table of their own, so that programs without gradients leave them out.
template <typename T>
const GradientLoops<T>& gradient_loops_for(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512::gradient_loops<T>;
  if (isa == Isa::avx2) return avx2::gradient_loops<T>;
#endif
  return baseline::gradient_loops<T>;
}

enum class Kind { maximum, average };

/// Plane by plane, shared out over threads.
class PoolKernel : public Kernel {
 public:
  PoolKernel(std::string name, const Window& window, int64_t planes, int threads)
      : window_(window), name_(std::move(name)), planes_(planes), threads_(threads) {}
  std::string name() const override { return name_; }
  void run(const KernelArguments& arguments) override {
    const int parts = static_cast<int>(std::min<int64_t>(threads_, planes_));
    parallel_run(threads_, parts, [&](int part, int total) {
      const auto [begin, end] = split_range(planes_, part, total);
      for (int64_t plane = begin; plane < end; ++plane) run_plane(arguments, plane, part);
    });
  }

 protected:
  virtual void run_plane(const KernelArguments& arguments, int64_t plane, int part) const = 0;
  int threads() const { return threads_; }
  int64_t large() const { return window_.height * window_.width * window_.channels; }
  int64_t small() const { return window_.out_height * window_.out_width * window_.channels; }
  const Window window_;

 private:
  const std::string name_;
  const int64_t planes_;
  const int threads_;
};

template <typename T>
class Pool : public PoolKernel {
 public:
  Pool(Kind kind, std::string name, const Window& window, int64_t planes, int threads, Isa isa)
      : PoolKernel(std::move(name), window, planes, threads),
        loop_(kind == Kind::average ? loops_for<T>(isa).average
              : is_quad(window)     ? loops_for<T>(isa).maximum_of_quads
                                    : loops_for<T>(isa).maximum) {}

 private:
  void run_plane(const KernelArguments& arguments, int64_t plane, int) const override {
    loop_(window_, arguments.input<T>(0) + plane * large(), arguments.output<T>(0) + plane * small());
  }

  void (*const loop_)(const Window&, const T* x, T* y);
};

template <typename T>
class PoolGradient : public PoolKernel {
 public:
  PoolGradient(Kind kind, std::string name, const Window& window, int64_t planes, int threads, Isa isa)
      : PoolKernel(std::move(name), window, planes, threads),
        kind_(kind),
        quads_(is_quad(window)),
        loops_(gradient_loops_for<T>(isa)) {}

  int64_t workspace_bytes() const override {
    const bool adds_up = kind_ == Kind::average || !quads_;
    return adds_up ? threads() * rows_bytes() : 0;
  }

 private:
  int64_t rows_bytes() const {
    return align_up(std::min(window_.kernel[0], window_.height) * window_.width * window_.channels * 4);
  }

  void run_plane(const KernelArguments& arguments, int64_t plane, int part) const override {
    auto* rows = reinterpret_cast<float*>(static_cast<char*>(arguments.workspace) + part * rows_bytes());
    const T* dy = arguments.input<T>(0) + plane * small();
    T* const dx = arguments.output<T>(0) + plane * large();
    if (kind_ == Kind::average) return loops_.average(window_, dy, dx, rows);
    const T *x = arguments.input<T>(1) + plane * large(), *y = arguments.input<T>(2) + plane * small();
    if (quads_)
      loops_.maximum_of_quads(window_, dy, x, y, dx);
    else
      loops_.maximum(window_, dy, x, y, dx, rows);
  }

  const Kind kind_;
  const bool quads_;
  const GradientLoops<T>& loops_;
};

template <template <typename> class PoolOf>
std::unique_ptr<Kernel> make_pool(Kind kind, Isa isa, const NodeSignature& node, const KernelOptions& options,
                                  std::string& why_not) {
  const bool backward = node.op->name.ends_with("_backward");
  const TensorType& large = backward ? node.outputs[0] : node.inputs[0];
  const TensorType& small = backward ? node.inputs[0] : node.outputs[0];
  for (const auto* types : {&node.inputs, &node.outputs})
    for (const TensorType& type : *types)
      if (type.dtype != large.dtype || !is_stored_type(type.dtype) || type.layout != large.layout)
        return declined(why_not, fmt::format("operand {} is not f32 or bf16, or not in type and layout as {}",
                                             to_string(type), to_string(large)));
  Window window{large.shape[2], large.shape[3], small.shape[2], small.shape[3], adjacent_channels(large), {}, {}, {}};
  if (window.channels == 0) return declined(why_not, "layout of " + to_string(large));
  for (size_t axis = 0; axis < 2; ++axis) {
    window.kernel[axis] = node.attributes.integers("kernel")[axis];
    window.stride[axis] = node.attributes.integers("stride")[axis];
    window.padding[axis] = node.attributes.integers("padding")[axis];
  }
  if (node.attributes.has("count_padding")) window.count_padding = node.attributes.boolean("count_padding");
  const int64_t plane = window.height * window.width * window.channels;
  const int64_t planes = plane == 0 ? 0 : storage_elements(large.shape, large.layout) / plane;
  return with_stored_type(large.dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    return std::make_unique<PoolOf<decltype(number)>>(kind, "native:" + node.op->name, window, planes, options.threads,
                                                      isa);
  });
}

template <template <typename> class PoolOf>
void add(KernelTable& table, const char* op, Kind kind, Isa isa) {
  table.add(op, {"native", [kind, isa](const NodeSignature& node, const KernelOptions& options, std::string& why_not) {
                   return make_pool<PoolOf>(kind, isa, node, options, why_not);
                 }});
}

}  // namespace

void add_pool(KernelTable& table, Isa isa) {
  add<Pool>(table, "max_pool2d", Kind::maximum, isa);
  add<Pool>(table, "avg_pool2d", Kind::average, isa);
}

void add_pool_gradients(KernelTable& table, Isa isa) {
  add<PoolGradient>(table, "max_pool2d_backward", Kind::maximum, isa);
  add<PoolGradient>(table, "avg_pool2d_backward", Kind::average, isa);
}

}  // namespace weft::native
