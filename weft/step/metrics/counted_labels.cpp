#include "weft/step/metrics/counted_labels.h"

#include "weft/data/dataset/dataset.h"
#include "weft/ops/ops.h"

namespace weft::step {

namespace {

/// [rows]: 1 where the label does not count.
ValueId ignored(Graph& graph, ValueId labels) {
  const ValueId marker = graph.add(
      "constant", {},
      {{"shape", std::vector<int64_t>{}}, {"value", static_cast<double>(data::kIgnoredTarget)}, {"dtype", "i32"}},
      "ignored");
  return ops::equal(graph, labels, marker, "labels.ignored");
}

ValueId at_least_one(Graph& graph, ValueId counted) {
  return ops::maximum(graph, counted, ops::constant(graph, {}, 1, "one"), "counted.some");
}

}  // namespace

ValueId count_labels(Graph& graph, ValueId labels) {
  const ValueId left_out = ops::reduce_sum(graph, ignored(graph, labels), {}, false, "labels.left_out");
  const auto rows = static_cast<double>(graph.type(labels).elements());
  return ops::add_scalar(graph, ops::negate(graph, left_out), rows, "counted");
}

ValueId mean_of_counted(Graph& graph, ValueId losses, ValueId counted, const std::string& name) {
  const ValueId sum = ops::reduce_sum(graph, losses, {}, false, name + ".sum");
  return ops::divide(graph, sum, at_least_one(graph, counted), name);
}

ValueId scale_to_all(Graph& graph, ValueId correct, ValueId counted, double all, const std::string& name) {
  const ValueId share = ops::divide(graph, correct, at_least_one(graph, counted), name + ".share");
  return ops::multiply_scalar(graph, share, all, name);
}

ValueId count_right_sequences(Graph& graph, ValueId logits, ValueId labels, int64_t samples, const std::string& name) {
  const ValueId right = ops::equal(graph, ops::argmax(graph, logits, 1, false, name + ".largest"), labels);
  const ValueId passed = ops::maximum(graph, right, ignored(graph, labels), name + ".passed");
  const ValueId rows = ops::reshape(graph, passed, {samples, -1}, name + ".rows");
  return ops::reduce_sum(graph, ops::reduce_min(graph, rows, {1}, false, name + ".whole"), {}, false, name);
}

Overlap overlap_of_classes(Graph& graph, ValueId logits, ValueId labels) {
  const int64_t classes = graph.shape(logits)[1];
  const ValueId labelled = ops::one_hot(graph, labels, classes, "labelled");
  const ValueId counts = ops::reduce_sum(graph, labelled, {1}, true, "labelled.counts");  // 0 where no class is meant
  const ValueId largest = ops::one_hot(graph, ops::argmax(graph, logits, 1, false, "largest"), classes, "predicted");
  const ValueId predicted = ops::multiply(graph, largest, counts, "predicted.counted");
  const auto sum = [&](ValueId x, const char* name) { return ops::reduce_sum(graph, x, {0}, false, name); };
  return {sum(ops::minimum(graph, labelled, predicted), "intersections"),
          sum(ops::maximum(graph, labelled, predicted), "unions")};
}

}  // namespace weft::step
