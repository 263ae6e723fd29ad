// ctc_loss by the forward and backward recursions of Graves et al. 2006, section 4.1, in logarithms.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "weft/cpu/reference/reference.h"

namespace weft::reference {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

double log_add(double a, double b) {
  if (a == kImpossible) return b;
  if (b == kImpossible) return a;
  const double larger = std::max(a, b);
  return larger + std::log(std::exp(a - larger) + std::exp(b - larger));
}

struct Sizes {
  int64_t steps, batch, classes, targets, blank;
  bool zero_infinity, has_input_lengths, has_target_lengths;

  /// `first`: the position of the log-probabilities among the operands.
  Sizes(const NodeSignature& node, size_t first)
      : steps(node.inputs[first].shape[0]),
        batch(node.inputs[first].shape[1]),
        classes(node.inputs[first].shape[2]),
        targets(node.inputs[first + 1].shape[1]),
        blank(node.attributes.integer("blank")),
        zero_infinity(node.attributes.has("zero_infinity") && node.attributes.boolean("zero_infinity")),
        has_input_lengths(node.inputs.size() > first + 2),
        has_target_lengths(node.inputs.size() > first + 3) {}
};

/// One sequence of the batch. State s of its target with blanks around each label is label (s - 1) / 2 where s is odd,
/// else the blank.
struct Sequence {
  const float* log_probabilities;  // step t, class c at t * stride + c
  int64_t stride, classes, blank;
  const int32_t* labels;
  int64_t steps, count;  // of labels

  int64_t states() const { return 2 * count + 1; }
  int64_t label(int64_t s) const { return s % 2 == 1 ? labels[s / 2] : blank; }
  double log_probability(int64_t t, int64_t s) const {
    return static_cast<double>(log_probabilities[t * stride + label(s)]);
  }
  /// A label may follow another label without a blank between them, unless it is the same.
  bool may_skip_to(int64_t s) const { return s % 2 == 1 && s >= 2 && label(s) != label(s - 2); }
  bool is_valid(int64_t longest_input, int64_t longest_target) const {
    if (steps < 0 || steps > longest_input || count < 0 || count > longest_target) return false;
    return std::all_of(labels, labels + count, [&](int32_t c) { return c >= 0 && c < classes && c != blank; });
  }
};

/// The number of labels before the first blank or negative entry.
int64_t unpadded(const int32_t* labels, int64_t most, int64_t blank) {
  return std::find_if(labels, labels + most, [&](int32_t c) { return c < 0 || c == blank; }) - labels;
}

Sequence sequence_of(const Sizes& sizes, const KernelArguments& call, size_t first, int64_t n) {
  const int32_t* labels = input<int32_t>(call, first + 1) + n * sizes.targets;
  return {input(call, first) + n * sizes.classes,
          sizes.batch * sizes.classes,
          sizes.classes,
          sizes.blank,
          labels,
          sizes.has_input_lengths ? input<int32_t>(call, first + 2)[n] : sizes.steps,
          sizes.has_target_lengths ? input<int32_t>(call, first + 3)[n] : unpadded(labels, sizes.targets, sizes.blank)};
}

/// alphas[t * states + s]: log of the probability of all ways to be in state s at step t.
double forward(const Sequence& q, std::vector<double>& alphas) {
  const int64_t states = q.states();
  if (q.steps == 0) return q.count == 0 ? 0 : kImpossible;
  for (int64_t t = 0; t < q.steps; ++t)
    for (int64_t s = 0; s < states; ++s) {
      const auto before = [&](int64_t state) { return alphas[static_cast<size_t>((t - 1) * states + state)]; };
      double sum = t == 0 && s < 2 ? 0 : kImpossible;
      if (t > 0) {
        sum = before(s);
        if (s >= 1) sum = log_add(sum, before(s - 1));
        if (q.may_skip_to(s)) sum = log_add(sum, before(s - 2));
      }
      alphas[static_cast<size_t>(t * states + s)] = sum + q.log_probability(t, s);
    }
  const auto last = [&](int64_t state) { return alphas[static_cast<size_t>((q.steps - 1) * states + state)]; };
  return states == 1 ? last(0) : log_add(last(states - 1), last(states - 2));
}

Body prepare_ctc(const NodeSignature& node) {
  const Sizes sizes(node, 0);
  std::vector<double> alphas(static_cast<size_t>(sizes.steps * (2 * sizes.targets + 1)));
  return [sizes, alphas](const KernelArguments& call) mutable {
    for (int64_t n = 0; n < sizes.batch; ++n) {
      const Sequence q = sequence_of(sizes, call, 0, n);
      double loss = std::numeric_limits<double>::quiet_NaN();
      if (q.is_valid(sizes.steps, sizes.targets)) loss = -forward(q, alphas);
      if (std::isinf(loss) && sizes.zero_infinity) loss = 0;
      output(call, 0)[n] = static_cast<float>(loss);
    }
  };
}

Body prepare_ctc_backward(const NodeSignature& node) {
  const Sizes sizes(node, 1);
  const auto states = static_cast<size_t>(2 * sizes.targets + 1);
  std::vector<double> alphas(static_cast<size_t>(sizes.steps) * states), betas(states), next(states);
  return [sizes, alphas, betas, next](const KernelArguments& call) mutable {
    std::fill_n(output(call, 0), sizes.steps * sizes.batch * sizes.classes, 0.0f);
    for (int64_t n = 0; n < sizes.batch; ++n) {
      const Sequence q = sequence_of(sizes, call, 1, n);
      const bool valid = q.is_valid(sizes.steps, sizes.targets);
      const double total = valid ? forward(q, alphas) : kImpossible;
      const auto gradient = [&](int64_t t) { return output(call, 0) + (t * sizes.batch + n) * sizes.classes; };
      if (total == kImpossible) {
        const float everywhere = valid && sizes.zero_infinity ? 0 : std::numeric_limits<float>::quiet_NaN();
        for (int64_t t = 0; t < sizes.steps; ++t) std::fill_n(gradient(t), sizes.classes, everywhere);
        continue;
      }
      // betas[s]: log of the probability of all that follows state s after step t.
      for (int64_t t = q.steps - 1; t >= 0; --t) {
        for (int64_t s = 0; s < q.states(); ++s) {
          const auto after = [&](int64_t state) {
            return next[static_cast<size_t>(state)] + q.log_probability(t + 1, state);
          };
          double sum = t == q.steps - 1 && s >= q.states() - 2 ? 0 : kImpossible;
          if (t < q.steps - 1) {
            sum = after(s);
            if (s + 1 < q.states()) sum = log_add(sum, after(s + 1));
            if (s + 2 < q.states() && q.may_skip_to(s + 2)) sum = log_add(sum, after(s + 2));
          }
          betas[static_cast<size_t>(s)] = sum;
          const double share = std::exp(alphas[static_cast<size_t>(t * q.states() + s)] + sum - total);
          gradient(t)[q.label(s)] -= static_cast<float>(static_cast<double>(input(call, 0)[n]) * share);
        }
        std::swap(betas, next);
      }
    }
  };
}

Body prepare_ctc_count(const NodeSignature& node) {
  const Sizes sizes(node, 0);
  return [sizes](const KernelArguments& call) {
    int64_t correct = 0;
    for (int64_t n = 0; n < sizes.batch; ++n) {
      const Sequence q = sequence_of(sizes, call, 0, n);
      if (!q.is_valid(sizes.steps, sizes.targets)) continue;
      int64_t found = 0, before = sizes.blank;
      bool equal = true;
      for (int64_t t = 0; t < q.steps; ++t) {
        const float* step = q.log_probabilities + t * q.stride;
        const int64_t best = std::max_element(step, step + sizes.classes) - step;
        if (best != before && best != sizes.blank) {
          equal = equal && found < q.count && q.labels[found] == best;
          ++found;
        }
        before = best;
      }
      if (equal && found == q.count) ++correct;
    }
    *output(call, 0) = static_cast<float>(correct);
  };
}

}  // namespace

void add_ctc(KernelTable& table) {
  add_plain(table, "ctc_loss", prepare_ctc);
  add_plain(table, "ctc_loss_backward", prepare_ctc_backward);
  add_plain(table, "ctc_count_correct", prepare_ctc_count);
}

}  // namespace weft::reference
