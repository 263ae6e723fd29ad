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

/// T: what images consist of. `rows`: room for as many rows of the large image, in f32, as a window is high.
template <typename T>
struct Loops {
  void (*max_forward)(const Window&, const T* x, T* y);
  void (*max_backward)(const Window&, const T* dy, const T* x, const T* y, T* dx, float* rows);
  // For windows of 2 x 2, stride 2 and no padding.
  void (*max_forward_quads)(const Window&, const T* x, T* y);
  void (*max_backward_quads)(const Window&, const T* dy, const T* x, const T* y, T* dx);
  void (*average_forward)(const Window&, const T* x, T* y);
  void (*average_backward)(const Window&, const T* dy, T* dx, float* rows);
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

enum class Kind { max_forward, max_backward, average_forward, average_backward };

template <typename T>
class Pool : public Kernel {
 public:
  Pool(Kind kind, std::string name, const Window& window, int64_t planes, int threads, Isa isa)
      : kind_(kind),
        name_(std::move(name)),
        window_(window),
        planes_(planes),
        threads_(threads),
        quads_(is_quad(window)),
        loops_(loops_for<T>(isa)) {}

  std::string name() const override { return name_; }

  int64_t workspace_bytes() const override {
    const bool adds_up = kind_ == Kind::average_backward || (kind_ == Kind::max_backward && !quads_);
    return adds_up ? threads_ * rows_bytes() : 0;
  }

  void run(const KernelArguments& arguments) override {
    const int parts = static_cast<int>(std::min<int64_t>(threads_, planes_));
    parallel_run(threads_, parts, [&](int part, int total) {
      const auto [begin, end] = split_range(planes_, part, total);
      auto* rows = reinterpret_cast<float*>(static_cast<char*>(arguments.workspace) + part * rows_bytes());
      for (int64_t plane = begin; plane < end; ++plane) run_plane(arguments, plane, rows);
    });
  }

 private:
  int64_t rows_bytes() const {
    return align_up(std::min(window_.kernel[0], window_.height) * window_.width * window_.channels * 4);
  }

  void run_plane(const KernelArguments& arguments, int64_t plane, float* rows) const {
    const int64_t large = window_.height * window_.width * window_.channels;
    const int64_t small = window_.out_height * window_.out_width * window_.channels;
    const auto in = [&](size_t index, int64_t size) { return arguments.input<T>(index) + plane * size; };
    T* const out = arguments.output<T>(0);
    switch (kind_) {
      case Kind::max_forward:
        (quads_ ? loops_.max_forward_quads : loops_.max_forward)(window_, in(0, large), out + plane * small);
        break;
      case Kind::average_forward:
        loops_.average_forward(window_, in(0, large), out + plane * small);
        break;
      case Kind::max_backward:
        if (quads_)
          loops_.max_backward_quads(window_, in(0, small), in(1, large), in(2, small), out + plane * large);
        else
          loops_.max_backward(window_, in(0, small), in(1, large), in(2, small), out + plane * large, rows);
        break;
      case Kind::average_backward:
        loops_.average_backward(window_, in(0, small), out + plane * large, rows);
        break;
    }
  }

  const Kind kind_;
  const std::string name_;
  const Window window_;
  const int64_t planes_;
  const int threads_;
  const bool quads_;
  const Loops<T>& loops_;
};

std::unique_ptr<Kernel> make_pool(Kind kind, Isa isa, const NodeSignature& node, const KernelOptions& options,
                                  std::string& why_not) {
  const bool backward = kind == Kind::max_backward || kind == Kind::average_backward;
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
    return std::make_unique<Pool<decltype(number)>>(kind, "native:" + node.op->name, window, planes, options.threads,
                                                    isa);
  });
}

}  // namespace

void add_pool(KernelTable& table, Isa isa) {
  const auto add = [&](const char* op, Kind kind) {
    table.add(op,
              {"native", [kind, isa](const NodeSignature& node, const KernelOptions& options, std::string& why_not) {
                 return make_pool(kind, isa, node, options, why_not);
               }});
  };
  add("max_pool2d", Kind::max_forward);
  add("max_pool2d_backward", Kind::max_backward);
  add("avg_pool2d", Kind::average_forward);
  add("avg_pool2d_backward", Kind::average_backward);
}

}  // namespace weft::native
