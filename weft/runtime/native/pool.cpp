// max_pool2d, avg_pool2d and their gradients, plane by plane: a plane is one image's block of channels (blocked
// layouts), all its channels (channels last) or one channel (plain).
#include <fmt/format.h>

#include "weft/base/parallel.h"
#include "weft/runtime/native/channel_view.h"
#include "weft/runtime/native/native.h"

namespace weft::native {

namespace {

struct Window {
  int64_t height, width, out_height, out_width;
  int64_t channels;  // adjacent in memory
  int64_t kernel[2], stride[2], padding[2];
  bool count_padding = true;  // averages only
};

struct Loops {
  void (*max_forward)(const Window&, const float* x, float* y);
  void (*max_backward)(const Window&, const float* dy, const float* x, const float* y, float* dx);
  // For windows of 2 x 2, stride 2 and no padding; the backward one writes every element of dx.
  void (*max_forward_quads)(const Window&, const float* x, float* y);
  void (*max_backward_quads)(const Window&, const float* dy, const float* x, const float* y, float* dx);
  void (*average_forward)(const Window&, const float* x, float* y);
  void (*average_backward)(const Window&, const float* dy, float* dx);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/runtime/native/pool_loops.h"
#include "weft/runtime/native/multiversion.h"

namespace weft::native {

namespace {

bool is_quad(const Window& w) {
  return w.kernel[0] == 2 && w.kernel[1] == 2 && w.stride[0] == 2 && w.stride[1] == 2 && w.padding[0] == 0 &&
         w.padding[1] == 0;
}

class Pool : public Kernel {
 public:
  enum class Kind { max_forward, max_backward, average_forward, average_backward };

  Pool(Kind kind, std::string name, const Window& window, int64_t planes, int threads, Isa isa)
      : kind_(kind),
        name_(std::move(name)),
        window_(window),
        planes_(planes),
        threads_(threads),
        quads_(is_quad(window)),
        loops_(loops_for(isa)) {}

  std::string name() const override { return name_; }

  void run(const KernelArguments& arguments) override {
    parallel_for(threads_, planes_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) run_plane(arguments, plane);
    });
  }

 private:
  void run_plane(const KernelArguments& arguments, int64_t plane) const {
    const int64_t large = window_.height * window_.width * window_.channels;
    const int64_t small = window_.out_height * window_.out_width * window_.channels;
    const auto in = [&](size_t index, int64_t size) {
      return static_cast<const float*>(arguments.inputs[index]) + plane * size;
    };
    float* const out = static_cast<float*>(arguments.outputs[0]);
    switch (kind_) {
      case Kind::max_forward:
        (quads_ ? loops_.max_forward_quads : loops_.max_forward)(window_, in(0, large), out + plane * small);
        break;
      case Kind::average_forward:
        loops_.average_forward(window_, in(0, large), out + plane * small);
        break;
      case Kind::max_backward:
        if (quads_) {
          loops_.max_backward_quads(window_, in(0, small), in(1, large), in(2, small), out + plane * large);
          break;
        }
        std::memset(out + plane * large, 0, static_cast<size_t>(large) * sizeof(float));
        loops_.max_backward(window_, in(0, small), in(1, large), in(2, small), out + plane * large);
        break;
      case Kind::average_backward:
        std::memset(out + plane * large, 0, static_cast<size_t>(large) * sizeof(float));
        loops_.average_backward(window_, in(0, small), out + plane * large);
        break;
    }
  }

  const Kind kind_;
  const std::string name_;
  const Window window_;
  const int64_t planes_;
  const int threads_;
  const bool quads_;
  const Loops& loops_;
};

std::unique_ptr<Kernel> make_pool(Pool::Kind kind, Isa isa, const NodeSignature& node, const KernelOptions& options,
                                  std::string& why_not) {
  const bool backward = kind == Pool::Kind::max_backward || kind == Pool::Kind::average_backward;
  const TensorType& large = backward ? node.outputs[0] : node.inputs[0];
  const TensorType& small = backward ? node.inputs[0] : node.outputs[0];
  for (const auto* types : {&node.inputs, &node.outputs})
    for (const TensorType& type : *types)
      if (type.dtype != DType::f32 || type.layout != large.layout)
        return declined(why_not,
                        fmt::format("operand {} is not f32 in the layout of {}", to_string(type), to_string(large)));
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
  return std::make_unique<Pool>(kind, "native:" + node.op->name, window, planes, options.threads, isa);
}

}  // namespace

void add_pool(KernelTable& table, Isa isa) {
  const auto add = [&](const char* op, Pool::Kind kind) {
    table.add(op,
              {"native", [kind, isa](const NodeSignature& node, const KernelOptions& options, std::string& why_not) {
                 return make_pool(kind, isa, node, options, why_not);
               }});
  };
  add("max_pool2d", Pool::Kind::max_forward);
  add("max_pool2d_backward", Pool::Kind::max_backward);
  add("avg_pool2d", Pool::Kind::average_forward);
  add("avg_pool2d_backward", Pool::Kind::average_backward);
}

}  // namespace weft::native
