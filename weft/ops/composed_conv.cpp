// Convolutions composed of the 2-d ones: transposed, and over sequences.
#include "weft/base/error.h"
#include "weft/ops/define.h"

namespace weft::ops {

ValueId conv_transpose2d(Graph& graph, ValueId input, ValueId weight, const ConvTranspose2dOptions& options,
                         const std::string& name) {
  const std::string hint = name.empty() ? "conv_transpose2d" : name;
  const Shape images = graph.shape(input), kernel = graph.shape(weight);
  if (images.rank() != 4 || kernel.rank() != 4 || images[1] != kernel[0])
    fail(ErrorKind::shape,
         "[conv_transpose2d] '{}': wants images (N,C,H,W) and weights (C,O/groups,KH,KW), got '{}' {} and '{}' {}",
         hint, graph.value(input).name, to_string(images), graph.value(weight).name, to_string(kernel));
  std::vector<int64_t> size;
  for (size_t axis = 0; axis < 2; ++axis) {
    const int at = static_cast<int>(axis) + 2;
    if (options.output_padding[axis] < 0 || options.output_padding[axis] >= options.stride[axis])
      fail(ErrorKind::shape, "[conv_transpose2d] '{}': output_padding {} must be at least 0 and below the stride {}",
           hint, options.output_padding[axis], options.stride[axis]);
    size.push_back((images[at] - 1) * options.stride[axis] - 2 * options.padding[axis] +
                   options.dilation[axis] * (kernel[at] - 1) + options.output_padding[axis] + 1);
  }
  return graph.add("conv2d_backward_data", {input, weight},
                   {{"stride", to_list(options.stride)},
                    {"padding", to_list(options.padding)},
                    {"dilation", to_list(options.dilation)},
                    {"groups", options.groups},
                    {"input_size", size}},
                   hint);
}

ValueId conv1d(Graph& graph, ValueId input, ValueId weight, const Conv1dOptions& options, const std::string& name) {
  const std::string hint = name.empty() ? "conv1d" : name;
  const Shape sequence = graph.shape(input), kernel = graph.shape(weight);
  if (sequence.rank() != 3 || kernel.rank() != 3)
    fail(ErrorKind::shape, "[conv1d] '{}': wants sequences (N,C,L) and weights (O,C/groups,K), got '{}' {} and '{}' {}",
         hint, graph.value(input).name, to_string(sequence), graph.value(weight).name, to_string(kernel));
  const ValueId row = reshape(graph, input, {sequence[0], sequence[1], 1, sequence[2]});
  const ValueId filter = reshape(graph, weight, {kernel[0], kernel[1], 1, kernel[2]});
  const ValueId result =
      conv2d(graph, row, filter, {{1, options.stride}, {0, options.padding}, {1, options.dilation}, options.groups},
             hint + ".row");
  const Shape shape = graph.shape(result);
  return reshape(graph, result, {shape[0], shape[1], shape[3]}, hint);
}

}  // namespace weft::ops
