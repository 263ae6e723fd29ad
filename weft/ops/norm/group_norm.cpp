// Group and instance normalisation, composed of batch_norm: an image whose "channels" are the groups of all images is
// normalised over exactly the elements of each group.
#include <fmt/format.h>

#include "weft/base/error.h"
#include "weft/ops/define.h"

namespace weft::ops {

namespace {

/// input [N,C,..] and one scale and one shift per channel; `op` and `name` stand in messages.
void require_channels(const Graph& graph, const char* op, const std::string& name, ValueId input, ValueId scale,
                      ValueId shift) {
  const Shape& shape = graph.shape(input);
  if (shape.rank() < 2)
    fail(ErrorKind::shape, "[{}] '{}': input wants (batch, channels, ..), got '{}' {}", op, name,
         graph.value(input).name, to_string(shape));
  for (const ValueId operand : {scale, shift})
    if (graph.shape(operand) != Shape{shape[1]})
      fail(ErrorKind::shape, "[{}] '{}': wants one number for each of the {} channels of '{}' {}, got '{}' {}", op,
           name, shape[1], graph.value(input).name, to_string(shape), graph.value(operand).name,
           to_string(graph.shape(operand)));
}

/// [C] repeated for every image: [N C].
ValueId per_image(Graph& graph, ValueId x, int64_t images) {
  const int64_t channels = graph.shape(x).elements();
  return reshape(graph, broadcast_to(graph, x, {images, channels}), {images * channels});
}

}  // namespace

ValueId instance_norm(Graph& graph, ValueId input, ValueId scale, ValueId shift, double epsilon,
                      const std::string& name) {
  const std::string hint = name.empty() ? "instance_norm" : name;
  require_channels(graph, "instance_norm", hint, input, scale, shift);
  const Shape shape = graph.shape(input);
  const ValueId planes = reshape(graph, input, {1, shape[0] * shape[1], -1, 1});
  const ValueId normalised = batch_norm(graph, planes, per_image(graph, scale, shape[0]),
                                        per_image(graph, shift, shape[0]), epsilon, hint + ".planes")
                                 .output;
  return reshape(graph, normalised, shape.dims(), hint);
}

ValueId group_norm(Graph& graph, ValueId input, ValueId scale, ValueId shift, int64_t groups, double epsilon,
                   const std::string& name) {
  const std::string hint = name.empty() ? "group_norm" : name;
  require_channels(graph, "group_norm", hint, input, scale, shift);
  const Shape shape = graph.shape(input);
  if (groups < 1 || shape[1] % groups != 0)
    fail(ErrorKind::shape, "[group_norm] '{}': {} groups do not divide the {} channels of '{}' {}", hint, groups,
         shape[1], graph.value(input).name, to_string(shape));
  const int64_t all = shape[0] * groups;
  const ValueId planes = reshape(graph, input, {1, all, -1, 1});
  const ValueId normalised =
      batch_norm(graph, planes, constant(graph, {all}, 1), constant(graph, {all}, 0), epsilon, hint + ".groups").output;
  std::vector<int64_t> per_channel(static_cast<size_t>(shape.rank()), 1);
  per_channel[1] = shape[1];
  const ValueId scaled = multiply(graph, reshape(graph, normalised, shape.dims()), reshape(graph, scale, per_channel));
  return add(graph, scaled, reshape(graph, shift, per_channel), hint);
}

}  // namespace weft::ops
