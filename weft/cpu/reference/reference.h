// What the reference kernels share: registration, and the walk over strided operands.
// A reference kernel is a loop that reads like the op's definition: plain layouts, f32 storage, double accumulation.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weft/device/function_kernel.h"
#include "weft/tensor/element.h"

namespace weft::reference {

using Body = KernelBody;
/// Makes the body for one signature.
using Prepare = std::function<Body(const NodeSignature&)>;

/// Which dtypes a kernel itself is written for.
enum class Accepts { f32, any_dtype };

/// Registers the reference kernel of `op` on plain layouts; it declines blocked or permuted operands. One that
/// `accepts` f32 serves narrower floating types on widened copies (widen.h).
void add_plain(KernelTable& table, const std::string& op, Prepare prepare, Accepts accepts = Accepts::f32);
/// The same for an op whose arithmetic on f64, integers and booleans is another: what `prepare_typed` makes.
void add_numbers(KernelTable& table, const std::string& op, Prepare prepare, Prepare prepare_typed);
/// The same on any layouts.
void add_any_layout(KernelTable& table, const std::string& op, Prepare prepare);

template <typename T = float>
const T* input(const KernelArguments& arguments, size_t index) {
  return arguments.input<T>(index);
}
template <typename T = float>
T* output(const KernelArguments& arguments, size_t index) {
  return arguments.output<T>(index);
}

/// Maps the position in a row-major walk over `shape` to an offset under other strides (0: broadcast), in elements.
class StridedView {
 public:
  StridedView(const Shape& shape, std::vector<int64_t> strides, int64_t base = 0);
  int64_t operator()(int64_t position) const {
    if (contiguous_) return base_ + position;
    int64_t offset = base_;
    for (size_t axis = dims_.size(); axis-- > 0;) {
      offset += position % dims_[axis] * strides_[axis];
      position /= dims_[axis];
    }
    return offset;
  }

 private:
  std::vector<int64_t> dims_, strides_;
  int64_t base_;
  bool contiguous_;
};

/// A row-major operand of shape `from`, seen as broadcast to `to` by NumPy's rules.
StridedView broadcast_view(const Shape& from, const Shape& to);

/// The place of the first largest of `count` elements that lie `stride` apart; a NaN counts as the largest.
int64_t first_largest(const float* x, int64_t count, int64_t stride);

using weft::load_element;
using weft::store_element;
/// Zeros behind the last element of a packed result: a kernel writes elements into a byte that may hold anything.
void clear_bits_behind(const TensorType& type, void* data);

// One function per family of ops, each in the file of its name.
void add_conv(KernelTable&);
void add_matmul(KernelTable&);
void add_batch_norm(KernelTable&);
void add_layer_norm(KernelTable&);
void add_elementwise(KernelTable&);
void add_reduce(KernelTable&);
void add_pool(KernelTable&);
void add_shape(KernelTable&);
void add_resample(KernelTable&);
void add_indexing(KernelTable&);
void add_integer(KernelTable&);
void add_quantized(KernelTable&);
void add_scatter(KernelTable&);
void add_top_k(KernelTable&);
void add_loss(KernelTable&);
void add_embedding(KernelTable&);
void add_rnn(KernelTable&);
void add_ctc(KernelTable&);
void add_random(KernelTable&);
void add_attention(KernelTable&);
void add_cached_attention(KernelTable&);
void add_update(KernelTable&);
void add_collective(KernelTable&);

}  // namespace weft::reference

namespace weft {

/// Those of add_reference_kernels() that inference wants.
void add_forward_reference_kernels(KernelTable&);

}  // namespace weft
