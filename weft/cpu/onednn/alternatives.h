// What oneDNN has for a convolution or a matrix product besides the implementation that it would take itself: such
// kernels run only where they were measured to be the fastest (tuned_backend.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/device/kernel.h"

namespace weft::onednn {

using Wants = std::function<bool(const std::string& name)>;

/// Those of which `wants` accepts the name, none twice; none for other ops.
std::vector<std::unique_ptr<Kernel>> make_alternatives(const NodeSignature& node, int threads, const Wants& wants);

struct Request;
std::vector<std::unique_ptr<Kernel>> other_convolutions(const Request& request, const Wants& wants);
std::vector<std::unique_ptr<Kernel>> other_matmuls(const Request& request, const Wants& wants);

/// True where none of the kernels has this name.
bool is_new(const std::vector<std::unique_ptr<Kernel>>& kernels, const std::string& name);

}  // namespace weft::onednn
