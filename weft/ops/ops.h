// Functions that add ops to a graph: the vocabulary in which models, losses, optimisers and gradient rules are written.
// `weft ops` prints the full reference, derived from the registry (ops/all.h).
//
// Shapes: N batch, C channels, H height, W width, O output channels, G groups. All tensors f32 unless said.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "weft/graph/graph.h"

namespace weft::ops {

using Pair = std::array<int64_t, 2>;  // (height, width)

// --- convolution (conv.cpp) -----------------------------------------------------------------------------------------
// Ops and attributes (all integers lists have 2 entries: height, width):
//   conv2d(input[N,C,H,W], weight[O,C/G,KH,KW]) {stride=[1,1], padding=[0,0], dilation=[1,1], groups=1} -> [N,O,H',W']
//   conv2d_backward_data(output_gradient[N,O,H',W'], weight) {stride.., groups, input_size=[H,W]} -> [N,C,H,W]
//   conv2d_backward_weights(input, output_gradient) {stride.., groups, kernel=[KH,KW]} -> [O,C/G,KH,KW]
// H' = (H + 2 padding - dilation (KH - 1) - 1) / stride + 1. Depthwise: groups = C. LayoutRule::kernel for all three.
struct Conv2dOptions {
  Pair stride{1, 1}, padding{0, 0}, dilation{1, 1};
  int64_t groups = 1;
  bool is_exact = false;  // the mark kExact (graph/marks.h)
};
ValueId conv2d(Graph&, ValueId input, ValueId weight, const Conv2dOptions& options = {}, const std::string& name = "");

/// Transposed convolution (as torch.conv_transpose2d): the gradient of conv2d with respect to its input, as an op of
/// its own. input [N,O,H,W], weight [O,C/G,KH,KW] -> [N,C,H',W'], H' = (H - 1) stride - 2 padding + dilation (KH - 1) +
/// output_padding + 1. output_padding is less than the stride.
struct ConvTranspose2dOptions {
  Pair stride{1, 1}, padding{0, 0}, output_padding{0, 0}, dilation{1, 1};
  int64_t groups = 1;
};
ValueId conv_transpose2d(Graph&, ValueId input, ValueId weight, const ConvTranspose2dOptions& options = {},
                         const std::string& name = "");
/// input [N,C,L], weight [O,C/G,K] -> [N,O,L']: conv2d over one row.
struct Conv1dOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
};
ValueId conv1d(Graph&, ValueId input, ValueId weight, const Conv1dOptions& options = {}, const std::string& name = "");

// --- matmul (matmul.cpp) --------------------------------------------------------------------------------------------
//   matmul(a[..,M,K], b[..,K,N]) {transpose_a=false, transpose_b=false} -> [..,M,N]
// Rank >= 2 each; leading dimensions broadcast. transpose_x: the operand is stored with its last two dims swapped.
ValueId matmul(Graph&, ValueId a, ValueId b, bool transpose_a = false, bool transpose_b = false,
               const std::string& name = "");

// --- normalisation (norm.cpp) ---------------------------------------------------------------------------------------
// Training batch norm over all axes but 1 (rank 2 or 4; the function also takes 3), biased variance:
//   batch_norm(input, scale[C], shift[C], residual?) {epsilon=1e-5, activation="none"}
//       -> (output, mean[C], variance[C]);   output = act((input - mean) / sqrt(variance + epsilon) * scale + shift +
//       residual)
//   activation "none" | "relu" | "relu6". Model code uses neither residual nor activation: passes/fuse_batch_norm does.
//   batch_norm_backward(output_gradient, input, scale, shift, mean, variance, output?)
//       {epsilon, activation="none", residual_gradient=false}
//       -> (input_gradient, scale_gradient[C], shift_gradient[C], residual_gradient?)
//   An activation masks the gradient first, by output > 0 ("relu6": < 6 too); where `output` is absent (only without a
//   residual in the forward op) the mask is recomputed from input. residual_gradient: there is a fourth output.
//   batch_norm_inference(input, scale[C], shift[C], mean[C], variance[C], residual?) {epsilon, activation} -> output
//   running_average(running[C], sample[C]) {momentum=0.1, sample_factor=1.0} -> running'  (is_update)
//       running' = (1 - momentum) running + momentum * sample_factor * sample   (factor n/(n-1): the unbiased variance)
//   layer_norm(input[..,D], scale[D], shift[D]) {epsilon=1e-5} -> (output, mean[..], inverse_std[..])
//   layer_norm_backward(output_gradient, input, scale, mean, inverse_std) -> (input_gradient, scale_gradient,
//   shift_gradient)
// batch norm ops: LayoutRule::channelwise.
struct BatchNormResult {
  ValueId output, mean, variance;
};
BatchNormResult batch_norm(Graph&, ValueId input, ValueId scale, ValueId shift, double epsilon = 1e-5,
                           const std::string& name = "");
ValueId batch_norm_inference(Graph&, ValueId input, ValueId scale, ValueId shift, ValueId mean, ValueId variance,
                             double epsilon = 1e-5, const std::string& name = "");
ValueId running_average(Graph&, ValueId running, ValueId sample, double momentum, double sample_factor,
                        const std::string& name = "");
ValueId layer_norm(Graph&, ValueId input, ValueId scale, ValueId shift, double epsilon = 1e-5,
                   const std::string& name = "");

/// Each image's channels in groups, every group normalised by its own mean and variance (Wu and He 2018), composed.
/// input [N,C,..], scale and shift [C].
ValueId group_norm(Graph&, ValueId input, ValueId scale, ValueId shift, int64_t groups, double epsilon = 1e-5,
                   const std::string& name = "");
/// The same for each channel alone (Ulyanov et al. 2016).
ValueId instance_norm(Graph&, ValueId input, ValueId scale, ValueId shift, double epsilon = 1e-5,
                      const std::string& name = "");

// --- activations (activation.cpp) -----------------------------------------------------------------------------------
// unary(x) -> same shape: relu, leaky_relu {slope=0.01}, elu {alpha=1.0}, clip {low, high}, hardswish, gelu
//   {approximate=false: erf, true: tanh form}, silu, tanh, sigmoid, softplus
// with a backward op of their own, of (output_gradient, output): relu_backward, leaky_relu_backward {slope},
// elu_backward
//   {alpha}, clip_backward {low, high}; of (output_gradient, input): hardswish_backward, gelu_backward {approximate},
//   silu_backward
ValueId relu(Graph&, ValueId x, const std::string& name = "");
ValueId leaky_relu(Graph&, ValueId x, double slope = 0.01, const std::string& name = "");
ValueId elu(Graph&, ValueId x, double alpha = 1, const std::string& name = "");
ValueId clip(Graph&, ValueId x, double low, double high, const std::string& name = "");
ValueId relu6(Graph&, ValueId x, const std::string& name = "");        // clip from 0 to 6
ValueId hardsigmoid(Graph&, ValueId x, const std::string& name = "");  // clip(x / 6 + 1 / 2) from 0 to 1
ValueId hardswish(Graph&, ValueId x, const std::string& name = "");    // x hardsigmoid(x)
ValueId gelu(Graph&, ValueId x, bool approximate = false, const std::string& name = "");
ValueId silu(Graph&, ValueId x, const std::string& name = "");
ValueId tanh(Graph&, ValueId x, const std::string& name = "");
ValueId sigmoid(Graph&, ValueId x, const std::string& name = "");
ValueId softplus(Graph&, ValueId x, const std::string& name = "");

// --- elementwise (elementwise.cpp) ----------------------------------------------------------------------------------
// unary(x) -> same shape: exp, log, sqrt, negate, absolute, square, reciprocal, erf, sign, floor, ceil, round (half to
//   even); sin, cos, tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh (trigonometric.cpp)
// binary(a, b) -> broadcast shape (NumPy rules): add, subtract, multiply, divide, pow, maximum, minimum,
//   equal, greater, greater_equal (1.0 where true, else 0.0, f32 for f32 or i32; bool for all other types)
// where(condition, a, b) -> broadcast shape: a where the condition is not 0, else b (f32 each, or a bool condition and
//   two operands of any type)
// All but where take f64, too; many take integers (docs/ops.md says which, and what they make of them).
//
// add_scalar(x) {value}, multiply_scalar(x) {value}, pow_scalar(x) {value}
// fused_elementwise(x...) {program="...", results=[...]}: made by passes/fuse_elementwise only; see ops/fused.h.
// All of both: LayoutRule::elementwise, in_place on operands of the output's shape.
ValueId exp(Graph&, ValueId x, const std::string& name = "");
ValueId log(Graph&, ValueId x, const std::string& name = "");
ValueId sqrt(Graph&, ValueId x, const std::string& name = "");
ValueId negate(Graph&, ValueId x, const std::string& name = "");
ValueId absolute(Graph&, ValueId x, const std::string& name = "");
ValueId square(Graph&, ValueId x, const std::string& name = "");
ValueId reciprocal(Graph&, ValueId x, const std::string& name = "");
ValueId erf(Graph&, ValueId x, const std::string& name = "");
ValueId sign(Graph&, ValueId x, const std::string& name = "");
ValueId floor(Graph&, ValueId x, const std::string& name = "");
ValueId ceil(Graph&, ValueId x, const std::string& name = "");
ValueId round(Graph&, ValueId x, const std::string& name = "");
ValueId sin(Graph&, ValueId x, const std::string& name = "");
ValueId cos(Graph&, ValueId x, const std::string& name = "");
ValueId tan(Graph&, ValueId x, const std::string& name = "");
ValueId asin(Graph&, ValueId x, const std::string& name = "");
ValueId acos(Graph&, ValueId x, const std::string& name = "");
ValueId atan(Graph&, ValueId x, const std::string& name = "");
ValueId sinh(Graph&, ValueId x, const std::string& name = "");
ValueId cosh(Graph&, ValueId x, const std::string& name = "");
ValueId asinh(Graph&, ValueId x, const std::string& name = "");
ValueId acosh(Graph&, ValueId x, const std::string& name = "");
ValueId atanh(Graph&, ValueId x, const std::string& name = "");
ValueId add(Graph&, ValueId a, ValueId b, const std::string& name = "");
ValueId subtract(Graph&, ValueId a, ValueId b, const std::string& name = "");
ValueId multiply(Graph&, ValueId a, ValueId b, const std::string& name = "");
ValueId divide(Graph&, ValueId a, ValueId b, const std::string& name = "");
ValueId maximum(Graph&, ValueId a, ValueId b, const std::string& name = "");
ValueId minimum(Graph&, ValueId a, ValueId b, const std::string& name = "");
ValueId equal(Graph&, ValueId a, ValueId b, const std::string& name = "");
ValueId greater(Graph&, ValueId a, ValueId b, const std::string& name = "");
ValueId greater_equal(Graph&, ValueId a, ValueId b, const std::string& name = "");
ValueId less(Graph&, ValueId a, ValueId b, const std::string& name = "");
ValueId less_equal(Graph&, ValueId a, ValueId b, const std::string& name = "");
ValueId not_equal(Graph&, ValueId a, ValueId b, const std::string& name = "");
ValueId where(Graph&, ValueId condition, ValueId a, ValueId b, const std::string& name = "");
ValueId pow(Graph&, ValueId a, ValueId b, const std::string& name = "");
/// Squares, roots and reciprocals become the ops of these names.
ValueId pow_scalar(Graph&, ValueId x, double exponent, const std::string& name = "");
ValueId add_scalar(Graph&, ValueId x, double value, const std::string& name = "");
ValueId multiply_scalar(Graph&, ValueId x, double value, const std::string& name = "");

// --- reductions (reduce.cpp) ----------------------------------------------------------------------------------------
//   reduce_sum, reduce_mean, reduce_prod, reduce_max, reduce_min (x) {axes=[...], keep_dims=false}; negative axes count
//   from the end. Extrema are NaN where an element is. softmax, log_softmax (x) and softmax_backward(dy, y) {axis=-1}
ValueId reduce_sum(Graph&, ValueId x, std::vector<int64_t> axes = {}, bool keep_dims = false,
                   const std::string& name = "");
ValueId reduce_mean(Graph&, ValueId x, std::vector<int64_t> axes = {}, bool keep_dims = false,
                    const std::string& name = "");
ValueId reduce_prod(Graph&, ValueId x, std::vector<int64_t> axes = {}, bool keep_dims = false,
                    const std::string& name = "");
ValueId reduce_max(Graph&, ValueId x, std::vector<int64_t> axes = {}, bool keep_dims = false,
                   const std::string& name = "");
ValueId reduce_min(Graph&, ValueId x, std::vector<int64_t> axes = {}, bool keep_dims = false,
                   const std::string& name = "");
/// log(sum(exp(x))) over the axes, without overflow; composed.
ValueId logsumexp(Graph&, ValueId x, const std::vector<int64_t>& axes = {}, bool keep_dims = false,
                  const std::string& name = "");
ValueId softmax(Graph&, ValueId x, int64_t axis = -1, const std::string& name = "");
ValueId log_softmax(Graph&, ValueId x, int64_t axis = -1, const std::string& name = "");
/// Sums `x` down to `shape`, undoing a broadcast; x itself where the shapes are equal.
ValueId sum_to_shape(Graph&, ValueId x, const Shape& shape);

// --- pooling (pool.cpp) ---------------------------------------------------------------------------------------------
//   max_pool2d(input[N,C,H,W]) {kernel=[KH,KW], stride=[..], padding=[0,0]} -> [N,C,H',W']
//   max_pool2d_backward(output_gradient, input, output) {kernel, stride, padding} -> [N,C,H,W]
//       the gradient goes to the first NaN of each window in row-major order, else to its first maximum
//   avg_pool2d(input) {kernel, stride, padding=[0,0], count_padding=true} -> [N,C,H',W']
//   avg_pool2d_backward(output_gradient) {kernel, stride, padding, count_padding, input_size=[H,W]} -> [N,C,H,W]
// All: LayoutRule::channelwise.
struct Pool2dOptions {
  Pair kernel{2, 2}, stride{2, 2}, padding{0, 0};
};
ValueId max_pool2d(Graph&, ValueId input, const Pool2dOptions& options, const std::string& name = "");
ValueId avg_pool2d(Graph&, ValueId input, const Pool2dOptions& options, const std::string& name = "");
/// [N,C,H,W] -> [N,C]
ValueId global_avg_pool2d(Graph&, ValueId input, const std::string& name = "");
ValueId global_max_pool2d(Graph&, ValueId input, const std::string& name = "");

// --- other image sizes (resample.cpp) -------------------------------------------------------------------------------
//   resize(input[N,C,H,W]) {size=[H',W'], mode="nearest"} -> [N,C,H',W']; mode "nearest": pixel floor(i (H / H')),
//       in f32 as torch computes it; "bilinear": between the centres of pixels, which are areas (PyTorch's interpolate
//       with align_corners=False)
//   adaptive_avg_pool2d(input) {size=[H',W']}: window i is [floor(i H / H'), ceil((i + 1) H / H'))
//   resize_backward(output_gradient) {input_size=[H,W], mode}, adaptive_avg_pool2d_backward(output_gradient)
//       {input_size}
// LayoutRule::channelwise.
ValueId resize(Graph&, ValueId input, const Pair& size, const std::string& mode = "nearest",
               const std::string& name = "");
/// avg_pool2d where the windows are all alike.
ValueId adaptive_avg_pool2d(Graph&, ValueId input, const Pair& size, const std::string& name = "");

// --- shapes (shape.cpp) ---------------------------------------------------------------------------------------------
//   reshape(x) {shape=[..]} (is_view; one -1 allowed when given, stored resolved)
//   transpose(x) {permutation=[..]}; broadcast_to(x) {shape=[..]}
//   concat(x...) {axis}; slice(x) {starts=[..], ends=[..]} one pair per axis
//   strided_slice(x) {starts, ends, steps}, in strided_slice.cpp
//   pad(x) {low=[..], high=[..], value=0.0}; cast(x) {dtype="f32"}; reorder(x): the output's layout is the graph's
//   choice constant() {shape=[..], value=0.0, dtype="f32"}
ValueId reshape(Graph&, ValueId x, std::vector<int64_t> shape, const std::string& name = "");
ValueId transpose(Graph&, ValueId x, std::vector<int64_t> permutation, const std::string& name = "");
ValueId broadcast_to(Graph&, ValueId x, const Shape& shape, const std::string& name = "");
ValueId concat(Graph&, const std::vector<ValueId>& xs, int64_t axis, const std::string& name = "");
ValueId slice(Graph&, ValueId x, std::vector<int64_t> starts, std::vector<int64_t> ends, const std::string& name = "");
/// x[start:end:step] of each axis by NumPy's rules: below zero counts from the end, what lies outside is cut off, steps
/// may be negative. Steps of 1 alone make a slice.
ValueId strided_slice(Graph&, ValueId x, std::vector<int64_t> starts, std::vector<int64_t> ends,
                      std::vector<int64_t> steps, const std::string& name = "");
/// The axis cut into equal parts, or into parts of these sizes: slices.
std::vector<ValueId> split(Graph&, ValueId x, int64_t parts, int64_t axis, const std::string& name = "");
std::vector<ValueId> split_sizes(Graph&, ValueId x, const std::vector<int64_t>& sizes, int64_t axis,
                                 const std::string& name = "");
ValueId pad(Graph&, ValueId x, std::vector<int64_t> low, std::vector<int64_t> high, double value = 0,
            const std::string& name = "");
ValueId cast(Graph&, ValueId x, DType dtype, const std::string& name = "");
ValueId reorder(Graph&, ValueId x, const Layout& layout, const std::string& name = "");
ValueId constant(Graph&, const Shape& shape, double value, const std::string& name = "");
/// Exact for every number of i64.
ValueId constant(Graph&, DType dtype, const Shape& shape, int64_t value, const std::string& name = "");
/// constant_tensor() {data=<..>}: a tensor that the graph holds (graph/constant_node.h). Nothing is copied.
ValueId constant_tensor(Graph&, Constant data, const std::string& name = "");
/// A vector of i64, such as the shape that ONNX's Reshape is given.
ValueId constant_integers(Graph&, const std::vector<int64_t>& values, const std::string& name = "");
/// start, start + step, ...: iota() {count, start=0, step=1, dtype="i64"}
ValueId iota(Graph&, DType dtype, int64_t count, int64_t start = 0, int64_t step = 1, const std::string& name = "");

// --- integers and booleans (integer.cpp) ----------------------------------------------------------------------------
//   modulo(a, b) {truncated=false}: the remainder has the sign of b, as Python's %; truncated: that of a, as C's
//   bitwise_and, bitwise_or, bitwise_xor (a, b), bitwise_not(x): integers; shift_left, shift_right (a, b): a's type
//   logical_and, logical_or, logical_xor (a, b), logical_not(x): bool
ValueId modulo(Graph&, ValueId a, ValueId b, bool truncated = false, const std::string& name = "");
ValueId bitwise_and(Graph&, ValueId a, ValueId b, const std::string& name = "");
ValueId bitwise_or(Graph&, ValueId a, ValueId b, const std::string& name = "");
ValueId bitwise_xor(Graph&, ValueId a, ValueId b, const std::string& name = "");
ValueId bitwise_not(Graph&, ValueId x, const std::string& name = "");
ValueId shift_left(Graph&, ValueId a, ValueId b, const std::string& name = "");
ValueId shift_right(Graph&, ValueId a, ValueId b, const std::string& name = "");
ValueId logical_and(Graph&, ValueId a, ValueId b, const std::string& name = "");
ValueId logical_or(Graph&, ValueId a, ValueId b, const std::string& name = "");
ValueId logical_xor(Graph&, ValueId a, ValueId b, const std::string& name = "");
ValueId logical_not(Graph&, ValueId x, const std::string& name = "");

// --- integers of 8 bits that stand for reals (integer_products.cpp, quantized.cpp; requantization.h: the formulas)
// ----
//   integer_matmul(a[..,M,K], b[..,K,N], a_zero_point?, b_zero_point?) -> i32[..,M,N], of i8 and u8; exact
//   integer_conv2d(input, weight, input_zero_point?, weight_zero_point?) {stride, padding=[above,left,below,right],
//       dilation, groups} -> i32[N,O,H',W']
//   requantize(sum i32, factor, zero_point, bias?) {axis=1, rounding="float"|"fixed", multiplier_bits=24, low, high}
//   quantized_matmul, quantized_conv2d: both in one, of (.., factor, zero_point, bias?); made by passes/fuse_requantize
//   dequantized_matmul(a, b, a_zero_point, b_zero_point, factor, bias f32?) -> f32: f32(integer_matmul) factor + bias
//   quantize_linear(x, scale, zero_point) {axis=1}
//   dequantize_linear(q, scale, zero_point) {axis=1, group=0}: also of i4, u4, i2 and u2. With a group, so many numbers
//       along the axis share a scale and a zero point, which have the dimensions of q then
//   quantized_affine(q, factor, shift, zero_point) {axis=1, low, high}: round(q factor + shift)
//   quantized_add(a, b, a_scale, a_zero_point, b_scale, b_zero_point, scale, zero_point) {low, high}
// A zero point has the type of what it belongs to, a result that of its zero point. The zero point of b or of a weight,
// a scale, a factor and a bias may be one number or one per channel. None is differentiable.
struct IntegerConv2dOptions {
  Pair stride{1, 1}, dilation{1, 1};
  std::array<int64_t, 4> padding{0, 0, 0, 0};
  int64_t groups = 1;
};
/// No zero points, that of the first operand, or both.
ValueId integer_matmul(Graph&, ValueId a, ValueId b, const std::vector<ValueId>& zero_points,
                       const std::string& name = "");
ValueId integer_conv2d(Graph&, ValueId input, ValueId weight, const std::vector<ValueId>& zero_points,
                       const IntegerConv2dOptions& options, const std::string& name = "");
/// `bias` may be invalid.
ValueId requantize(Graph&, ValueId sum, ValueId factor, ValueId zero_point, ValueId bias, int64_t axis,
                   const std::string& name = "");
ValueId quantize_linear(Graph&, ValueId x, ValueId scale, ValueId zero_point, int64_t axis = 1,
                        const std::string& name = "");
ValueId dequantize_linear(Graph&, ValueId q, ValueId scale, ValueId zero_point, int64_t axis = 1,
                          const std::string& name = "", int64_t group = 0);

// --- indices and running sums (indexing.cpp) ------------------------------------------------------------------------
//   gather(x, indices i32) {axis=-1} -> shape of indices, which may differ from x along the axis only (as
//   torch.gather), for x of any type and indices of i64, too;
//       NaN, or 0, where an index is out of range. gather_backward(output_gradient, indices) {axis, size}: scatter-add
//   one_hot(indices i32[..]) {classes} -> [..,classes]; zeros where the index is no class
//   argmax(x) {axis=-1, keep_dims=false} -> i32, the first of equal ones
//   cumulative_sum(x) {axis=-1, reverse=false, exclusive=false}
ValueId gather(Graph&, ValueId x, ValueId indices, int64_t axis = -1, const std::string& name = "");
/// Whole slices along the axis, as numpy.take and ONNX's Gather: the axis of x is replaced by the axes of the indices.
/// For f32 composed of other ops, i64 indices being cast to i32; else the op take(x, indices) {axis=0}, where negative
/// indices count from the end.
ValueId take(Graph&, ValueId x, ValueId indices, int64_t axis = 0, const std::string& name = "");
ValueId one_hot(Graph&, ValueId indices, int64_t classes, const std::string& name = "");
ValueId argmax(Graph&, ValueId x, int64_t axis = -1, bool keep_dims = false, const std::string& name = "");
ValueId argmin(Graph&, ValueId x, int64_t axis = -1, bool keep_dims = false, const std::string& name = "");
ValueId cumulative_sum(Graph&, ValueId x, int64_t axis = -1, bool reverse = false, bool exclusive = false,
                       const std::string& name = "");

/// The k largest or smallest elements along the axis, sorted, and where they were: top_k(x) {k, axis=-1, largest=true}
/// -> (values, indices i64). Of equal ones the lower index comes first; a NaN counts as the largest.
struct TopKResult {
  ValueId values, indices;
};
TopKResult top_k(Graph&, ValueId x, int64_t k, int64_t axis = -1, bool largest = true, const std::string& name = "");

// --- scatters (scatter.cpp) -----------------------------------------------------------------------------------------
//   scatter_elements(data, indices, updates) {axis=-1, reduction="none"} -> data with each update at the place that its
//       index names along the axis, as ONNX's ScatterElements
//   gather_nd(data, indices[..,K]) {batch_dims=0} -> the slices that vectors of K indices name, as ONNX's GatherND
//   scatter_nd(data, indices[..,K], updates) {batch_dims=0, reduction="none"} -> data with such slices replaced, as
//       ONNX's ScatterND
// Of any type; indices i32 or i64, where negative ones count from the end. What a gather looks for out of range is NaN,
// or 0, and what a scatter would write there is left out. A reduction joins the update with what is there: "add",
// "multiply", "maximum", "minimum" of numbers. "none" writes over it; of several updates of one place the last counts.
ValueId scatter_elements(Graph&, ValueId data, ValueId indices, ValueId updates, int64_t axis = -1,
                         const std::string& reduction = "none", const std::string& name = "");
/// ONNX's GatherElements: gather with indices that may be negative, and smaller than x in the other axes; composed.
ValueId gather_elements(Graph&, ValueId x, ValueId indices, int64_t axis = -1, const std::string& name = "");
ValueId gather_nd(Graph&, ValueId data, ValueId indices, int64_t batch_dims = 0, const std::string& name = "");
ValueId scatter_nd(Graph&, ValueId data, ValueId indices, ValueId updates, const std::string& reduction = "none",
                   int64_t batch_dims = 0, const std::string& name = "");

// --- losses and metrics (loss.cpp) ----------------------------------------------------------------------------------
//   cross_entropy(logits[N,C], labels i32[N]) {label_smoothing=0.0, ignore_index=-100} -> losses[N]
//       -sum_c q_c log softmax(logits)_c, q = (1 - s) onehot + s / C  (Szegedy et al. 2016, section 7)
//       0 for rows with the label ignore_index, NaN for other labels that are no class
//   cross_entropy_backward(loss_gradient[N], logits, labels) {label_smoothing, ignore_index} -> [N,C]
//   count_correct(logits[N,C], labels i32[N]) -> f32[]: rows whose first largest logit is the label
ValueId cross_entropy(Graph&, ValueId logits, ValueId labels, double label_smoothing = 0, const std::string& name = "");
ValueId count_correct(Graph&, ValueId logits, ValueId labels, const std::string& name = "");

// --- composed losses (composed_loss.cpp) ----------------------------------------------------------------------------
struct CrossEntropyOptions {
  double label_smoothing = 0;
  int64_t ignore_index = -100;
  ValueId class_weights{};  // [C]; absent: 1 each
};
/// Losses of the labels' shape. Logits [N,C,..] and labels [N,..]: the classes are axis 1, as in PyTorch.
ValueId cross_entropy(Graph&, ValueId logits, ValueId labels, const CrossEntropyOptions& options,
                      const std::string& name = "");
/// One number: their sum over that of the weights of the labels that count, as PyTorch's reduction "mean".
ValueId mean_cross_entropy(Graph&, ValueId logits, ValueId labels, const CrossEntropyOptions& options = {},
                           const std::string& name = "");
/// Targets f32[..,C] are probabilities (mixup, distillation) -> [..].
ValueId soft_cross_entropy(Graph&, ValueId logits, ValueId targets, const std::string& name = "");
// Regression: prediction and target [N,..] of one shape -> [N], the mean over all other axes.
ValueId mse(Graph&, ValueId prediction, ValueId target, const std::string& name = "");
ValueId l1(Graph&, ValueId prediction, ValueId target, const std::string& name = "");
/// d^2 / 2 where |d| < delta, else delta (|d| - delta / 2) (Huber 1964). smooth_l1: the same divided by beta.
ValueId huber(Graph&, ValueId prediction, ValueId target, double delta = 1, const std::string& name = "");
ValueId smooth_l1(Graph&, ValueId prediction, ValueId target, double beta = 1, const std::string& name = "");
/// Binary cross-entropy of sigmoid(logits) with targets in [0, 1], without overflow; [N,..] -> [N]. The weight of
/// positive targets broadcasts to the logits.
ValueId bce_with_logits(Graph&, ValueId logits, ValueId targets, const std::string& name = "",
                        ValueId positive_weight = {});

// --- embedding (embedding.cpp) --------------------------------------------------------------------------------------
//   embedding(table[V,D], indices i32[..], place?) -> [..,D];
//   embedding_backward(output_gradient[..,D], indices, place?) {rows=V} -> [V,D]
//       place i64[]: the table is that one of equal parts of a table; what is in others is zero
ValueId embedding(Graph&, ValueId table, ValueId indices, const std::string& name = "");

// --- recurrent layers (rnn.cpp) -------------------------------------------------------------------------------------
//   lstm(projected[T,N,4H], weight[4H,H], bias[4H], initial_hidden[N,H], initial_cell[N,H]) {reverse=false}
//       -> (output[T,N,H], cells[T,N,H], gates[T,N,4H])   gates in the order i, f, g, o
//   gru(projected[T,N,3H], weight[3H,H], input_bias[3H], recurrent_bias[3H], initial_hidden[N,H]) {reverse=false}
//       -> (output[T,N,H], gates[T,N,4H])                 r, z, n and the recurrent part of n, before its reset
//   lstm_backward(output_gradient, weight, initial_cell, cells, gates, cells_gradient?) {reverse}
//       -> (projected_gradient, initial_hidden_gradient, initial_cell_gradient)
//   gru_backward(output_gradient, weight, initial_hidden, output, gates) {reverse}
//       -> (projected_gradient, recurrent_gradient[T,N,3H], initial_hidden_gradient)
// The gates are for the gradient only. The functions below are whole layers of one direction, with PyTorch's formulas,
// order of gates and weights. Steps come first: input [T,N,C].
struct RecurrentWeights {
  ValueId input, recurrent;                // [gates H,C], [gates H,H]
  ValueId input_bias{}, recurrent_bias{};  // [gates H] each; absent: zeros
};
struct LstmResult {
  ValueId output, hidden, cell;  // [T,N,H]; after the last step [N,H]
};
/// Initial states [N,H]; invalid: zeros. `reverse` walks from the last step to the first; output t belongs to input t.
LstmResult lstm(Graph&, ValueId input, const RecurrentWeights& weights, ValueId initial_hidden = {},
                ValueId initial_cell = {}, bool reverse = false, const std::string& name = "");
struct GruResult {
  ValueId output, hidden;
};
GruResult gru(Graph&, ValueId input, const RecurrentWeights& weights, ValueId initial_hidden = {}, bool reverse = false,
              const std::string& name = "");

// --- connectionist temporal classification (ctc.cpp) ----------------------------------------------------------------
//   ctc_loss(log_probabilities[T,N,C], targets i32[N,S], input_lengths? i32[N], target_lengths? i32[N])
//       {blank=0, zero_infinity=false} -> losses[N]
//   ctc_loss_backward(loss_gradient[N], ...) -> [T,N,C]; behind a log_softmax it gives the same as PyTorch, whose own
//       takes the softmax's gradient into that of ctc_loss
//   ctc_count_correct(logits[T,N,C], targets, input_lengths?, target_lengths?) {blank=0} -> f32[]
struct CtcTargets {
  ValueId labels;            // i32[N,S], none of them the blank
  ValueId input_lengths{};   // i32[N]; absent: all steps
  ValueId target_lengths{};  // i32[N]; absent: up to the first blank or negative entry. Wants input_lengths
};
struct CtcOptions {
  int64_t blank = 0;
  bool zero_infinity = false;  // leave out sequences that are too short for their targets
};
ValueId ctc_loss(Graph&, ValueId log_probabilities, const CtcTargets& targets, const CtcOptions& options = {},
                 const std::string& name = "");
ValueId ctc_count_correct(Graph&, ValueId logits, const CtcTargets& targets, int64_t blank = 0,
                          const std::string& name = "");

// --- random (random.cpp) --------------------------------------------------------------------------------------------
//   dropout(x, seed i64[], step i64[], place?, outer_place?) {probability, stream=0, blocks=[], parts=[]}: zero with
//   `probability`, else x / (1 - probability). The mask depends on (seed, step, stream, element position) only: element
//   i takes word i % 4 of philox(mix(seed, stream), step, i / 4) and is dropped where uniform_from_bits(word) <
//   probability. Its gradient is dropout of the gradient under the same key: no mask is stored. LayoutRule::plain.
ValueId dropout(Graph&, ValueId x, ValueId seed, ValueId step, double probability, int64_t stream,
                const std::string& name = "");

// --- attention (attention.cpp) --------------------------------------------------------------------------------------
//   causal_mask(scores[..,T,S]) {value=-inf as -1e30}: scores where column <= row + (S - T), else value
//   fused_attention(q[..,T,D], k[..,S,D] or [..,D,S], v[..,S,E], mask?) {scale, causal, transpose_k} -> [..,T,E]: made
//   by passes/fuse_attention only, for inference
/// Scaled dot-product attention (Vaswani et al. 2017, eq. 1), composed: softmax(q k^T / sqrt(D)) v.
/// q [B,heads,T,D], k and v [B,heads,S,D].
ValueId attention(Graph&, ValueId q, ValueId k, ValueId v, bool causal, const std::string& name = "");

//   cached_attention(q, k, v [B,heads,S,D], keys, values [B,heads,T,D], position i64[]) {scale=1.0}
//       -> y [B,heads,S,D], keys', values'  (is_update; all f32)
struct CachedAttentionResult {
  ValueId output, keys, values;  // the caches with the rows position .. position+S-1 of k and v
};
/// Query s sees rows 0 to position+s of the caches, with scores scaled by 1 / sqrt(D). Rows from T on are not kept, and
/// their results are NaN; a position below 0 keeps no row, and all results are NaN.
CachedAttentionResult cached_attention(Graph&, ValueId q, ValueId k, ValueId v, ValueId keys, ValueId values,
                                       ValueId position, const std::string& name = "");

// --- updates (update.cpp), all is_update and in place ---------------------------------------------------------------
//   sgd_update(parameter, gradient, velocity, learning_rate[]) {momentum=0.9, nesterov=false, weight_decay=0.0}
//       -> (parameter', velocity');  g = gradient + weight_decay * parameter; velocity' = momentum * velocity + g;
//          parameter' = parameter - learning_rate * (nesterov ? g + momentum * velocity' : velocity')   (as
//          torch.optim.SGD)
//   adamw_update(parameter, gradient, first_moment, second_moment, learning_rate[], step i64[])
//       {beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.01, decoupled=true}
//       -> (parameter', first_moment', second_moment')
//          step counts from 0 (bias correction uses step + 1)     (as torch.optim.AdamW; not decoupled: as
//          torch.optim.Adam)
//   blend_update(state, value, keep[], take[]) -> state' = keep * state + take * value. Where keep or take is 0 the
//          other operand alone counts, whatever the one holds.
//   All three take a last operand apply[], where it is valid: where it is 0 the states stay as they are, whatever the
//       others hold.
//   squared_norm(x) -> [] the sum of squares, summed in double; no update: LayoutRule::channelwise
struct SgdOptions {
  double momentum = 0.9, weight_decay = 0;
  bool nesterov = false;
};
std::array<ValueId, 2> sgd_update(Graph&, ValueId parameter, ValueId gradient, ValueId velocity, ValueId learning_rate,
                                  const SgdOptions& options, const std::string& name = "", ValueId apply = {});
struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  bool decoupled = true;
};
std::array<ValueId, 3> adamw_update(Graph&, ValueId parameter, ValueId gradient, ValueId first_moment,
                                    ValueId second_moment, ValueId learning_rate, ValueId step,
                                    const AdamWOptions& options, const std::string& name = "", ValueId apply = {});
ValueId blend_update(Graph&, ValueId state, ValueId value, ValueId keep, ValueId take, const std::string& name = "",
                     ValueId apply = {});
ValueId squared_norm(Graph&, ValueId x, const std::string& name = "");

// --- collectives (collective.cpp) -----------------------------------------------------------------------------------
//   all_reduce(x) {reduction="mean"|"sum"} -> y, of x's shape: over all ranks, on each of them. f32 or bf16.
//   all_reduce_start, all_reduce_wait: its halves, made by passes/overlap_all_reduces.
ValueId all_reduce(Graph&, ValueId x, const std::string& reduction = "mean", const std::string& name = "",
                   const std::string& axis = "data");

}  // namespace weft::ops
