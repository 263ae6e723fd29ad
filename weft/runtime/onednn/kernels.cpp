// The table of all kernels that run on oneDNN.
#include "weft/runtime/onednn/families.h"

namespace weft {

void add_onednn_kernels(KernelTable& table) {
  const auto engine = std::make_shared<const onednn::Engine>();
  const onednn::Register add = [&](const std::string& op, onednn::Factory make) {
    table.add(op, {"onednn", [engine, make = std::move(make)](const NodeSignature& node, const KernelOptions& options,
                                                              std::string& why_not) {
                     const onednn::ThreadScope scope(options.threads);
                     return make({node, options.threads, engine}, why_not);
                   }});
  };
  onednn::add_convolutions(add);
  onednn::add_matmul(add);
  onednn::add_normalization(add);
  onednn::add_pooling(add);
  onednn::add_softmax(add);
  onednn::add_elementwise(add);
  onednn::add_reduction(add);
}

}  // namespace weft
