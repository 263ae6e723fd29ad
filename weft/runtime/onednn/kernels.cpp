// The table of all kernels that run on oneDNN.
#include "weft/runtime/onednn/convolution.h"
#include "weft/runtime/onednn/matmul.h"

namespace weft {

void add_onednn_kernels(KernelTable& table) {
  const auto engine = std::make_shared<const onednn::Engine>();
  const auto add = [&](const char* op, auto make) {
    table.add(op, {"onednn", [engine, make](const NodeSignature& node, const KernelOptions& options,
                                            std::string& why_not) { return make(node, options, engine, why_not); }});
  };
  for (const char* op : {"conv2d", "conv2d_backward_data", "conv2d_backward_weights"})
    add(op, onednn::make_convolution);
  add("matmul", onednn::make_matmul);
  add("reorder", onednn::make_reorder);
}

}  // namespace weft
