// Cross-entropy with label smoothing (Szegedy et al. 2016, section 7), its gradient, and the count of hits.
#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/cpu/reference/reference.h"

namespace weft::reference {
namespace {

/// log(sum(exp(row))), with the maximum taken off so that nothing overflows.
double log_sum_exp(const float* row, int64_t classes) {
  const double largest = static_cast<double>(*std::max_element(row, row + classes));
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(row[c]) - largest);
  return largest + std::log(sum);
}

/// Probability that the smoothed target gives to class c. A label that is no class gives NaN, which shows in the loss.
double target(int64_t c, int32_t label, int64_t classes, double smoothing) {
  if (label < 0 || label >= classes) return std::numeric_limits<double>::quiet_NaN();
  return (c == label ? 1 - smoothing : 0) + smoothing / static_cast<double>(classes);
}

Body prepare_cross_entropy(const NodeSignature& node) {
  const int64_t rows = node.inputs[0].shape[0], classes = node.inputs[0].shape[1];
  const double smoothing = node.attributes.real("label_smoothing");
  const int64_t ignored = node.attributes.integer("ignore_index");
  return [=](const KernelArguments& call) {
    const int32_t* labels = input<int32_t>(call, 1);
    for (int64_t n = 0; n < rows; ++n) {
      if (labels[n] == ignored) {
        output(call, 0)[n] = 0;
        continue;
      }
      const float* logits = input(call, 0) + n * classes;
      const double normaliser = log_sum_exp(logits, classes);
      double loss = 0;
      for (int64_t c = 0; c < classes; ++c) {
        const double weight = target(c, labels[n], classes, smoothing);
        if (weight != 0) loss -= weight * (static_cast<double>(logits[c]) - normaliser);  // no 0 * infinity
      }
      output(call, 0)[n] = static_cast<float>(loss);
    }
  };
}

Body prepare_cross_entropy_backward(const NodeSignature& node) {
  const int64_t rows = node.inputs[1].shape[0], classes = node.inputs[1].shape[1];
  const double smoothing = node.attributes.real("label_smoothing");
  const int64_t ignored = node.attributes.integer("ignore_index");
  return [=](const KernelArguments& call) {
    const float* loss_gradient = input(call, 0);
    const int32_t* labels = input<int32_t>(call, 2);
    for (int64_t n = 0; n < rows; ++n) {
      if (labels[n] == ignored) {
        std::fill_n(output(call, 0) + n * classes, classes, 0.0f);
        continue;
      }
      const float* logits = input(call, 1) + n * classes;
      const double normaliser = log_sum_exp(logits, classes), weight = static_cast<double>(loss_gradient[n]);
      for (int64_t c = 0; c < classes; ++c) {
        const double probability = std::exp(static_cast<double>(logits[c]) - normaliser);
        output(call, 0)[n * classes + c] =
            static_cast<float>(weight * (probability - target(c, labels[n], classes, smoothing)));
      }
    }
  };
}

Body prepare_count(const NodeSignature& node) {
  const int64_t rows = node.inputs[0].shape[0], classes = node.inputs[0].shape[1];
  return [=](const KernelArguments& call) {
    int64_t correct = 0;
    for (int64_t n = 0; n < rows; ++n) {
      const float* logits = input(call, 0) + n * classes;
      if (first_largest(logits, classes, 1) == input<int32_t>(call, 1)[n]) ++correct;
    }
    *output(call, 0) = static_cast<float>(correct);
  };
}

/// What class c of this part, the `place`th, takes of the target; NaN where the label is no class of any part.
double target_in_part(int64_t c, int32_t label, int64_t place, int64_t classes, int64_t parts, double smoothing) {
  return target(place * classes + c, label, classes * parts, smoothing);
}

Body prepare_class_terms(const NodeSignature& node) {
  const int64_t rows = node.inputs[0].shape[0], classes = node.inputs[0].shape[1];
  const double smoothing = node.attributes.real("label_smoothing");
  const int64_t ignored = node.attributes.integer("ignore_index"), parts = node.attributes.integer("parts");
  return [=](const KernelArguments& call) {
    const int64_t place = *input<int64_t>(call, 3);
    for (int64_t n = 0; n < rows; ++n) {
      const float* logits = input(call, 0) + n * classes;
      const int32_t label = input<int32_t>(call, 1)[n];
      const auto largest = static_cast<double>(input(call, 2)[n]);
      double sum = 0, taken = 0;
      for (int64_t c = 0; c < classes; ++c) {
        const auto logit = static_cast<double>(logits[c]);
        sum += std::exp(logit - largest);
        const double weight = label == ignored ? 0 : target_in_part(c, label, place, classes, parts, smoothing);
        if (weight != 0) taken += weight * logit;
      }
      output(call, 0)[n] = static_cast<float>(sum);
      output(call, 0)[rows + n] = static_cast<float>(taken);
    }
  };
}

Body prepare_class_terms_backward(const NodeSignature& node) {
  const int64_t rows = node.inputs[1].shape[0], classes = node.inputs[1].shape[1];
  const double smoothing = node.attributes.real("label_smoothing");
  const int64_t ignored = node.attributes.integer("ignore_index"), parts = node.attributes.integer("parts");
  return [=](const KernelArguments& call) {
    const int64_t place = *input<int64_t>(call, 4);
    for (int64_t n = 0; n < rows; ++n) {
      const auto weight = static_cast<double>(input(call, 0)[n]), log_sum = static_cast<double>(input(call, 3)[n]);
      const float* logits = input(call, 1) + n * classes;
      const int32_t label = input<int32_t>(call, 2)[n];
      for (int64_t c = 0; c < classes; ++c) {
        double gradient = 0;
        if (label != ignored)
          gradient = weight * (std::exp(static_cast<double>(logits[c]) - log_sum) -
                               target_in_part(c, label, place, classes, parts, smoothing));
        output(call, 0)[n * classes + c] = static_cast<float>(gradient);
      }
    }
  };
}

}  // namespace

void add_loss(KernelTable& table) {
  add_plain(table, "cross_entropy", prepare_cross_entropy);
  add_plain(table, "cross_entropy_backward", prepare_cross_entropy_backward);
  add_plain(table, "count_correct", prepare_count);
  add_plain(table, "class_terms", prepare_class_terms);
  add_plain(table, "class_terms_backward", prepare_class_terms_backward);
}

}  // namespace weft::reference
