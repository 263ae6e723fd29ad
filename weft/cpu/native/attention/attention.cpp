// fused_attention: tiles of queries, shared out over threads; no score leaves the near caches.
#include "weft/base/parallel.h"
#include "weft/cpu/native/attention/attention_task.h"
#include "weft/cpu/native/support/families.h"
#include "weft/ops/broadcast.h"

namespace weft::native {

namespace {

template <typename T>
struct Loops {
  void (*attend)(const AttentionTask<T>& task, float* scratch);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/attention/attention_loops.h"
#define WEFT_LOOPS_PER_TYPE
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

/// How the mask is seen by the scores [..,T,S]: by strides, which are 0 where it is repeated.
struct MaskView {
  std::vector<int64_t> dims, strides;  // of the dimensions before the last two
  int64_t row_stride = 0;

  int64_t offset(int64_t member) const {
    int64_t offset = 0;
    for (size_t axis = dims.size(); axis-- > 0; member /= dims[axis]) offset += member % dims[axis] * strides[axis];
    return offset;
  }
};

/// nullopt where a row of the mask is one number for all keys.
std::optional<MaskView> view_mask(const Shape& mask, const Shape& q, int64_t keys) {
  const int rank = q.rank();
  if (mask.rank() < 1 || mask[mask.rank() - 1] != keys) return std::nullopt;
  MaskView view;
  view.dims.assign(q.begin(), q.end() - 2);
  view.strides.assign(view.dims.size(), 0);
  int64_t stride = keys;
  for (int axis = rank - 2, own = mask.rank() - 2; own >= 0 && axis >= 0; --axis, --own) {
    if (mask[own] == 1) continue;
    (axis == rank - 2 ? view.row_stride : view.strides[static_cast<size_t>(axis)]) = stride;
    stride *= mask[own];
  }
  return view;
}

template <typename T>
class FusedAttention : public Kernel {
 public:
  FusedAttention(const NodeSignature& node, std::optional<MaskView> mask, int threads, const Loops<T>& loops)
      : loops_(loops),
        threads_(threads),
        mask_(std::move(mask)),
        scale_(static_cast<float>(node.attributes.real("scale"))),
        causal_(node.attributes.boolean("causal")),
        transpose_k_(node.attributes.boolean("transpose_k")) {
    const Shape &q = node.inputs[0].shape, &v = node.inputs[2].shape;
    queries_ = q[q.rank() - 2], width_ = q[q.rank() - 1];
    keys_ = v[v.rank() - 2], value_width_ = v[v.rank() - 1];
    members_ = q.elements() / (queries_ * width_);
    tiles_ = (queries_ + kQueryTile - 1) / kQueryTile;
  }
  std::string name() const override { return "native:fused_attention"; }
  int64_t workspace_bytes() const override { return parts() * scratch_bytes(); }

  void run(const KernelArguments& a) override {
    parallel_run(threads_, parts(), [&](int part, int total) {
      const auto [begin, end] = split_range(members_ * tiles_, part, total);
      auto* scratch = reinterpret_cast<float*>(static_cast<std::byte*>(a.workspace) + part * scratch_bytes());
      for (int64_t at = begin; at < end; ++at) loops_.attend(task(a, at / tiles_, at % tiles_ * kQueryTile), scratch);
    });
  }

 private:
  int parts() const { return static_cast<int>(std::min<int64_t>(threads_, members_ * tiles_)); }
  int64_t scratch_bytes() const {
    return align_up(static_cast<int64_t>(sizeof(float)) * attention_scratch(width_, value_width_));
  }

  AttentionTask<T> task(const KernelArguments& a, int64_t member, int64_t query) const {
    AttentionTask<T> task;
    task.q = a.input<T>(0) + (member * queries_ + query) * width_;
    task.k = a.input<T>(1) + member * keys_ * width_;
    task.v = a.input<T>(2) + member * keys_ * value_width_;
    task.mask_row_stride = mask_ ? mask_->row_stride : 0;
    task.mask = mask_ ? a.input<T>(3) + mask_->offset(member) + query * task.mask_row_stride : nullptr;
    task.output = a.output<T>(0) + (member * queries_ + query) * value_width_;
    task.rows = std::min(kQueryTile, queries_ - query);
    task.keys = keys_, task.width = width_, task.value_width = value_width_;
    task.visible = causal_ ? query + keys_ - queries_ + 1 : keys_;
    task.transpose_k = transpose_k_;
    task.scale = scale_;
    return task;
  }

  const Loops<T>& loops_;
  const int threads_;
  const std::optional<MaskView> mask_;
  const float scale_;
  const bool causal_, transpose_k_;
  int64_t queries_, keys_, width_, value_width_, members_, tiles_;
};

std::unique_ptr<Kernel> make(const NodeSignature& node, Isa isa, int threads, std::string& why_not) {
  if (!plain_images(node, node.inputs.size(), 1, why_not)) return nullptr;
  for (const TensorType& type : node.inputs)
    if (type.elements() == 0) return declined(why_not, "an operand is empty");
  const Shape &q = node.inputs[0].shape, &v = node.inputs[2].shape;
  std::optional<MaskView> mask;
  if (node.inputs.size() > 3) {
    mask = view_mask(node.inputs[3].shape, q, v[v.rank() - 2]);
    if (!mask) return declined(why_not, "the mask has one number for all keys");
  }
  return with_stored_type(node.inputs[0].dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    return std::make_unique<FusedAttention<T>>(node, mask, threads, loops_for<T>(isa));
  });
}

}  // namespace

void add_fused_attention(KernelTable& table, Isa isa) {
  table.add("fused_attention",
            {"native", [isa](const NodeSignature& node, const KernelOptions& options, std::string& why_not) {
               return make(node, isa, options.threads, why_not);
             }});
}

}  // namespace weft::native
