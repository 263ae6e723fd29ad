// matmul of at most four rows and a transposed matrix: the products of a fully connected layer for one sample, or for
// one token of a text. Such a product reads the matrix once and does little with it. oneDNN rearranges the matrix
// first, which takes as long again.
#include "weft/cpu/native/product/few_rows.h"

#include <algorithm>

#include "weft/base/parallel.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

/// T: what both factors consist of in memory. Columns [begin, end) of y [rows, width] = x [rows, depth] matrix^T.
template <typename T>
struct Loops {
  void (*in_type)(const T* x, const T* matrix, int64_t rows, int64_t depth, int64_t begin, int64_t end, int64_t width,
                  T* y);
  void (*in_f32)(const T* x, const T* matrix, int64_t rows, int64_t depth, int64_t begin, int64_t end, int64_t width,
                 float* y);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/product/few_rows_loops.h"
#define WEFT_LOOPS_PER_TYPE
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

constexpr int64_t kMostRows = 4;
constexpr int64_t kGrain = 1 << 15;  // elements of the matrix that are worth a thread

template <typename T>
class FewRows : public Kernel {
 public:
  FewRows(const NodeSignature& node, int threads, const Loops<T>& loops)
      : loops_(loops),
        threads_(threads),
        depth_(node.inputs[1].shape[1]),
        width_(node.inputs[1].shape[0]),
        rows_(node.outputs[0].elements() / width_),
        is_wide_(node.outputs[0].dtype == DType::f32) {}
  std::string name() const override { return "native:few_rows"; }

  void run(const KernelArguments& a) override {
    constexpr int64_t kLine = 16;  // columns of a cache line of f32, which two threads should not share
    const int64_t lines = (width_ + kLine - 1) / kLine;
    parallel_for(threads_, lines, std::max<int64_t>(1, kGrain / (kLine * depth_)), [&](int64_t first, int64_t last) {
      const int64_t begin = first * kLine, end = std::min(last * kLine, width_);
      const T *x = a.input<T>(0), *matrix = a.input<T>(1);
      if (is_wide_)
        loops_.in_f32(x, matrix, rows_, depth_, begin, end, width_, a.output<float>(0));
      else
        loops_.in_type(x, matrix, rows_, depth_, begin, end, width_, a.output<T>(0));
    });
  }

 private:
  const Loops<T>& loops_;
  const int threads_;
  const int64_t depth_, width_, rows_;
  const bool is_wide_;
};

bool is_served(const NodeSignature& node, std::string& why_not) {
  if (!all_plain(node, why_not)) return false;
  const TensorType &a = node.inputs[0], &b = node.inputs[1];
  if (!is_stored_type(a.dtype))
    why_not = "factors are " + std::string(name_of(a.dtype));
  else if (node.attributes.boolean("transpose_a") || !node.attributes.boolean("transpose_b") || b.shape.rank() != 2)
    why_not = "the second factor is no transposed matrix";
  else if (node.outputs[0].elements() == 0 || b.elements() == 0)
    why_not = "a factor is empty";
  else if (node.outputs[0].elements() > kMostRows * b.shape[0])
    why_not = "more than four rows";
  return why_not.empty();
}

}  // namespace

template <typename T>
MultiplyFewRows<T> multiply_few_rows(Isa isa) {
  return loops_for<T>(isa).in_f32;
}
template MultiplyFewRows<float> multiply_few_rows<float>(Isa isa);
template MultiplyFewRows<Bf16> multiply_few_rows<Bf16>(Isa isa);

void add_few_rows(KernelTable& table, Isa isa) {
  table.add("matmul", {"native",
                       [isa](const NodeSignature& node, const KernelOptions& options,
                             std::string& why_not) -> std::unique_ptr<Kernel> {
                         why_not.clear();
                         if (!is_served(node, why_not)) return nullptr;
                         return with_stored_type(node.inputs[0].dtype, [&](auto number) -> std::unique_ptr<Kernel> {
                           using T = decltype(number);
                           return std::make_unique<FewRows<T>>(node, options.threads, loops_for<T>(isa));
                         });
                       }});
}

}  // namespace weft::native
