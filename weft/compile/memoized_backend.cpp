#include "weft/compile/memoized_backend.h"

#include "weft/graph/signature_key.h"

namespace weft {

namespace {

template <typename Answers, typename Ask>
auto remembered(Answers& answers, const NodeSignature& node, Ask&& ask) {
  const std::string key = signature_key(node);
  const auto known = answers.find(key);
  if (known != answers.end()) return known->second;
  return answers.emplace(key, ask()).first->second;
}

}  // namespace

std::optional<LayoutChoice> MemoizedBackend::preferred_layouts(const NodeSignature& node) const {
  return remembered(layouts_, node, [&] { return backend_.preferred_layouts(node); });
}

bool MemoizedBackend::supports_layouts(const NodeSignature& node) const {
  return remembered(supported_, node, [&] { return backend_.supports_layouts(node); });
}

KernelChoice MemoizedBackend::choose_kernel(const NodeSignature& node) const {
  return remembered(kernels_, node, [&] { return backend_.choose_kernel(node); });
}

}  // namespace weft
