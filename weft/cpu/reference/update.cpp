// Parameter updates, with the arithmetic of torch.optim.SGD, AdamW and Adam, and the scaling of the loss.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "weft/cpu/reference/reference.h"
#include "weft/graph/accumulation.h"
#include "weft/graph/kept.h"
#include "weft/ops/ranks/tree_sum.h"

namespace weft::reference {
namespace {

/// Where the operand `apply` is there and 0, the results are the states as they are.
bool is_skipped(const KernelArguments& call, size_t apply) {
  return call.inputs.size() > apply && *input(call, apply) == 0;
}

void leave_state(const KernelArguments& call, size_t from, size_t to, int64_t elements) {
  if (call.outputs[to] != call.inputs[from])
    std::memcpy(call.outputs[to], call.inputs[from], static_cast<size_t>(elements) * sizeof(float));
}

Body prepare_sgd(const NodeSignature& node) {
  const int64_t elements = node.inputs[0].elements();
  const double momentum = node.attributes.real("momentum"), decay = node.attributes.real("weight_decay");
  const bool nesterov = node.attributes.boolean("nesterov");
  return [=](const KernelArguments& call) {
    const float *parameter = input(call, 0), *gradient = input(call, 1), *velocity = input(call, 2);
    if (is_skipped(call, 4)) {
      leave_state(call, 0, 0, elements);
      return leave_state(call, 2, 1, elements);
    }
    const double rate = static_cast<double>(*input(call, 3));
    for (int64_t i = 0; i < elements; ++i) {
      const double p = static_cast<double>(parameter[i]);
      const double g = static_cast<double>(gradient[i]) + decay * p;
      const double v = momentum * static_cast<double>(velocity[i]) + g;
      output(call, 0)[i] = static_cast<float>(p - rate * (nesterov ? g + momentum * v : v));
      output(call, 1)[i] = static_cast<float>(v);
    }
  };
}

Body prepare_product_sgd(const NodeSignature& node) {
  const int64_t terms = node.inputs[1].shape[0], rows = node.inputs[0].shape[0], columns = node.inputs[0].shape[1];
  const double momentum = node.attributes.real("momentum"), decay = node.attributes.real("weight_decay");
  const bool nesterov = node.attributes.boolean("nesterov");
  return [=](const KernelArguments& call) {
    if (is_skipped(call, 5)) {
      leave_state(call, 0, 0, rows * columns);
      return leave_state(call, 3, 1, rows * columns);
    }
    const double rate = static_cast<double>(*input(call, 4));
    for (int64_t i = 0; i < rows * columns; ++i) {
      const double p = static_cast<double>(input(call, 0)[i]);
      double g = decay * p;
      for (int64_t k = 0; k < terms; ++k)
        g += static_cast<double>(input(call, 1)[k * rows + i / columns]) *
             static_cast<double>(input(call, 2)[k * columns + i % columns]);
      const double v = momentum * static_cast<double>(input(call, 3)[i]) + g;
      output(call, 0)[i] = static_cast<float>(p - rate * (nesterov ? g + momentum * v : v));
      output(call, 1)[i] = static_cast<float>(v);
    }
  };
}

/// Loshchilov & Hutter 2019, algorithm 2, both columns, with the decoupled decay scaled by the learning rate.
Body prepare_adamw(const NodeSignature& node) {
  const int64_t elements = node.inputs[0].elements();
  const double beta1 = node.attributes.real("beta1"), beta2 = node.attributes.real("beta2");
  const double epsilon = node.attributes.real("epsilon"), decay = node.attributes.real("weight_decay");
  const bool decoupled = node.attributes.boolean("decoupled");
  return [=](const KernelArguments& call) {
    const float *parameter = input(call, 0), *gradient = input(call, 1);
    const float *first = input(call, 2), *second = input(call, 3);
    if (is_skipped(call, 6)) {
      leave_state(call, 0, 0, elements);
      leave_state(call, 2, 1, elements);
      return leave_state(call, 3, 2, elements);
    }
    const double rate = static_cast<double>(*input(call, 4));
    const double count = static_cast<double>(*input<int64_t>(call, 5)) + 1;
    const double correction1 = 1 - std::pow(beta1, count), correction2 = 1 - std::pow(beta2, count);
    for (int64_t i = 0; i < elements; ++i) {
      const double p = static_cast<double>(parameter[i]);
      const double g = static_cast<double>(gradient[i]) + (decoupled ? 0 : decay * p);
      const double m = beta1 * static_cast<double>(first[i]) + (1 - beta1) * g;
      const double v = beta2 * static_cast<double>(second[i]) + (1 - beta2) * g * g;
      const double decayed = decoupled ? p * (1 - rate * decay) : p;
      const double step = m / correction1 / (std::sqrt(v / correction2) + epsilon);
      output(call, 0)[i] = static_cast<float>(decayed - rate * step);
      output(call, 1)[i] = static_cast<float>(m);
      output(call, 2)[i] = static_cast<float>(v);
    }
  };
}

Body prepare_blend(const NodeSignature& node) {
  const int64_t elements = node.inputs[0].elements();
  const bool has_condition = node.op->name != kAccumulate;  // whose fifth operand is about what follows
  return [=](const KernelArguments& call) {
    if (has_condition && is_skipped(call, 4)) return leave_state(call, 0, 0, elements);
    const double keep = static_cast<double>(*input(call, 2)), take = static_cast<double>(*input(call, 3));
    for (int64_t i = 0; i < elements; ++i) {
      const double kept = keep == 0 ? 0 : keep * static_cast<double>(input(call, 0)[i]);
      const double taken = take == 0 ? 0 : take * static_cast<double>(input(call, 1)[i]);
      output(call, 0)[i] = static_cast<float>(kept + taken);
    }
  };
}

Body prepare_tree_sum(const NodeSignature& node) {
  const int64_t elements = node.inputs[0].elements();
  const auto partials = static_cast<int>(node.outputs.size());
  return [=](const KernelArguments& call) {
    const ops::TreeSumStep step = ops::tree_sum_step(*input<int64_t>(call, 1), partials);
    for (int64_t i = 0; i < elements; ++i) {
      float sum = input(call, 0)[i];
      for (int partial = 0; partial < step.joined; ++partial)
        sum = input(call, static_cast<size_t>(partial) + 2)[i] + sum;
      output(call, static_cast<size_t>(step.target))[i] = sum;
    }
    for (int partial = 0; partial < partials; ++partial)
      if (partial != step.target)
        leave_state(call, static_cast<size_t>(partial) + 2, static_cast<size_t>(partial), elements);
  };
}

Body prepare_squared_norm(const NodeSignature& node) {
  const int64_t elements = node.inputs[0].elements();
  return [=](const KernelArguments& call) {
    double sum = 0;
    for (int64_t i = 0; i < elements; ++i) {
      const double x = static_cast<double>(input(call, 0)[i]);
      sum += x * x;
    }
    *output(call, 0) = static_cast<float>(sum);
  };
}

Body prepare_unscale(const NodeSignature& node) {
  const int64_t elements = node.inputs[0].elements();
  return [=](const KernelArguments& call) {
    const double scale = static_cast<double>(*input(call, 1));
    bool finite = true;
    for (int64_t i = 0; i < elements; ++i) {
      const auto value = static_cast<float>(static_cast<double>(input(call, 0)[i]) / scale);
      finite = finite && std::isfinite(value);
      output(call, 0)[i] = value;
    }
    *output(call, 1) = finite ? 1 : 0;
  };
}

/// torch.cuda.amp.GradScaler.update (_amp_update_scale_ in ATen/native/cuda/AmpKernels.cu).
Body prepare_scale_update(const NodeSignature& node) {
  const auto growth = static_cast<float>(node.attributes.real("growth_factor"));
  const auto backoff = static_cast<float>(node.attributes.real("backoff_factor"));
  const int64_t interval = node.attributes.integer("growth_interval");
  return [=](const KernelArguments& call) {
    float scale = *input(call, 0);
    int64_t streak = *input<int64_t>(call, 1);
    const int64_t updates = *input<int64_t>(call, 2), skipped = *input<int64_t>(call, 3);
    const bool finite = *input(call, 4) != 0;
    if (!finite) {
      scale *= backoff;
      streak = std::min<int64_t>(streak, 0) - 1;
    } else if (streak = std::max<int64_t>(streak, 0) + 1; streak >= interval) {
      if (std::isfinite(scale * growth)) scale *= growth;
      streak = 0;
    }
    *output(call, 0) = scale;
    *output<int64_t>(call, 1) = streak;
    *output<int64_t>(call, 2) = updates + (finite ? 1 : 0);
    *output<int64_t>(call, 3) = skipped + (finite ? 0 : 1);
  };
}

/// The first operand is what the result replaces.
Body prepare_renew(const NodeSignature& node) {
  return [from = node.inputs[1].dtype, to = node.outputs[0].dtype,
          count = node.outputs[0].elements()](const KernelArguments& call) {
    for (int64_t i = 0; i < count; ++i) store_element(to, call.outputs[0], i, load_element(from, call.inputs[1], i));
  };
}

}  // namespace

void add_update(KernelTable& table) {
  add_plain(table, "sgd_update", prepare_sgd);
  add_plain(table, "product_sgd_update", prepare_product_sgd);
  add_plain(table, kRenew, prepare_renew, Accepts::any_dtype);
  add_plain(table, "adamw_update", prepare_adamw);
  add_plain(table, "blend_update", prepare_blend);
  add_plain(table, kAccumulate, prepare_blend);
  add_plain(table, "tree_sum_update", prepare_tree_sum);
  add_plain(table, "squared_norm", prepare_squared_norm);
  add_plain(table, "unscale_gradient", prepare_unscale);
  add_plain(table, "loss_scale_update", prepare_scale_update);
}

}  // namespace weft::reference
