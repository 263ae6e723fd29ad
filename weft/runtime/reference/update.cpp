// Parameter updates, with the arithmetic of torch.optim.SGD, AdamW and Adam.
#include <cmath>

#include "weft/runtime/reference/reference.h"

namespace weft::reference {
namespace {

Body prepare_sgd(const NodeSignature& node) {
  const int64_t elements = node.inputs[0].elements();
  const double momentum = node.attributes.real("momentum"), decay = node.attributes.real("weight_decay");
  const bool nesterov = node.attributes.boolean("nesterov");
  return [=](const KernelArguments& call) {
    const float *parameter = input(call, 0), *gradient = input(call, 1), *velocity = input(call, 2);
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

/// Loshchilov & Hutter 2019, algorithm 2, both columns, with the decoupled decay scaled by the learning rate.
Body prepare_adamw(const NodeSignature& node) {
  const int64_t elements = node.inputs[0].elements();
  const double beta1 = node.attributes.real("beta1"), beta2 = node.attributes.real("beta2");
  const double epsilon = node.attributes.real("epsilon"), decay = node.attributes.real("weight_decay");
  const bool decoupled = node.attributes.boolean("decoupled");
  return [=](const KernelArguments& call) {
    const float *parameter = input(call, 0), *gradient = input(call, 1);
    const float *first = input(call, 2), *second = input(call, 3);
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
  return [=](const KernelArguments& call) {
    const double keep = static_cast<double>(*input(call, 2)), take = static_cast<double>(*input(call, 3));
    for (int64_t i = 0; i < elements; ++i) {
      const double kept = keep == 0 ? 0 : keep * static_cast<double>(input(call, 0)[i]);
      const double taken = take == 0 ? 0 : take * static_cast<double>(input(call, 1)[i]);
      output(call, 0)[i] = static_cast<float>(kept + taken);
    }
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

}  // namespace

void add_update(KernelTable& table) {
  add_plain(table, "sgd_update", prepare_sgd);
  add_plain(table, "adamw_update", prepare_adamw);
  add_plain(table, "blend_update", prepare_blend);
  add_plain(table, "squared_norm", prepare_squared_norm);
}

}  // namespace weft::reference
