// Runs nodes and graphs one by one on freshly allocated tensors, without a plan: for tests, of
// kernels and of what passes and gradients make of a graph.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weft/device/device.h"

namespace weft {

/// The kernel's outputs for these inputs, in the layouts that the signature states. Error(shape) where an input is not
/// of the signature's type.
std::vector<Tensor> run_kernel(Kernel& kernel, const NodeSignature& node, const std::vector<Tensor>& inputs);

/// The same with the kernel that the device chooses.
std::vector<Tensor> evaluate_node(const NodeSignature& node, const std::vector<Tensor>& inputs, const Device& device);

/// All outputs and updates of the graph by name (an update under the name of its state), as plain tensors. `inputs` are
/// by the names of the graph's inputs, in any layout; Error(usage) where one is missing, Error(shape) where one does
/// not fit.
std::map<std::string, Tensor> evaluate_graph(const Graph& graph, const std::map<std::string, Tensor>& inputs,
                                             const Device& device);

}  // namespace weft
