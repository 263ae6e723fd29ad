// product_sgd_update: the gradient left^T right of a matrix is never in memory. The matrix is walked in tiles whose
// sums are held in registers, over panels of `right` that stay in the second-level cache; what the next tiles will read
// of the states is on its way while one is multiplied. So the states' own traffic bounds the kernel where there are few
// rows.
//
// Each element is a sum over the rows in their order, whatever tile and thread it belongs to.
#include "weft/cpu/native/update/product_update.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "weft/base/parallel.h"
#include "weft/cpu/native/support/families.h"
#include "weft/cpu/native/update/product_update_panel.h"

namespace weft::native {

namespace {

constexpr int64_t kPanelUnit = 64;          // columns: a multiple of every instruction set's tile
constexpr int64_t kPanelBytes = 256 << 10;  // of `right`, in f32
constexpr int64_t kGrain = 16384;           // elements below which a second thread costs more than it brings

template <typename T>
struct Loops {
  void (*update)(const PanelUpdate<T>&);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/update/product_update_loops.h"
#define WEFT_LOOPS_PER_TYPE
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

int64_t blocks_of(int64_t count, int64_t size) { return (count + size - 1) / size; }

template <typename T>
auto panel_update_for(Isa isa) {
  auto update = loops_for<T>(isa).update;
  if constexpr (std::is_same_v<T, Bf16>)
    if (isa == Isa::avx512 && multiplies_bf16() && product_update_by_pairs() != nullptr)
      update = product_update_by_pairs();
  return update;
}

template <typename T>
class ProductSgdUpdate : public Kernel {
 public:
  ProductSgdUpdate(const NodeSignature& node, int threads, Isa isa)
      : terms_(node.inputs[1].shape[0]),
        rows_(node.inputs[0].shape[0]),
        columns_(node.inputs[0].shape[1]),
        panel_columns_(std::clamp(kPanelBytes / (4 * std::max<int64_t>(terms_, 1)) / kPanelUnit * kPanelUnit,
                                  kPanelUnit, blocks_of(std::max<int64_t>(columns_, 1), kPanelUnit) * kPanelUnit)),
        parts_(static_cast<int>(std::clamp<int64_t>(rows_ * columns_ / kGrain, 1, threads))),
        threads_(threads),
        momentum_(static_cast<float>(node.attributes.real("momentum"))),
        weight_decay_(static_cast<float>(node.attributes.real("weight_decay"))),
        nesterov_(node.attributes.boolean("nesterov")),
        update_(panel_update_for<T>(isa)) {}

  std::string name() const override { return "native:product_sgd_update"; }
  int64_t workspace_bytes() const override { return parts_ * part_floats() * 4; }

  void run(const KernelArguments& a) override {
    if (a.inputs.size() > 5 && *a.input(5) == 0) {
      leave_state(a, 0, 0);
      return leave_state(a, 3, 1);
    }
    const int64_t blocks = blocks_of(rows_, kTileRows), panels = blocks_of(columns_, panel_columns_);
    parallel_run(threads_, parts_, [&](int part, int parts) {
      auto [begin, end] = split_range(panels * blocks, part, parts);
      float* const room = static_cast<float*>(a.workspace) + part * part_floats();
      while (begin < end) {
        const int64_t panel = begin / blocks, first = begin - panel * blocks,
                      count = std::min(blocks - first, end - begin), column = panel * panel_columns_;
        update_({a.input<T>(1), a.input<T>(2), terms_, rows_, columns_, a.input(0), a.input(3), a.output(0),
                 a.output(1), *a.input(4), momentum_, weight_decay_, nesterov_, column,
                 std::min(column + panel_columns_, columns_), first, first + count, room,
                 room + terms_ * panel_columns_});
        begin += count;
      }
    });
  }

 private:
  /// A part's own panel and block.
  int64_t part_floats() const { return blocks_of(terms_ * (panel_columns_ + kTileRows), 16) * 16; }

  void leave_state(const KernelArguments& a, size_t from, size_t to) const {
    if (a.outputs[to] != a.inputs[from])
      std::memcpy(a.outputs[to], a.inputs[from], static_cast<size_t>(rows_ * columns_) * sizeof(float));
  }

  const int64_t terms_, rows_, columns_, panel_columns_;
  const int parts_, threads_;
  const float momentum_, weight_decay_;
  const bool nesterov_;
  void (*const update_)(const PanelUpdate<T>&);
};

}  // namespace

void add_product_update(KernelTable& table, Isa isa) {
  table.add(
      "product_sgd_update",
      {"native",
       [isa](const NodeSignature& node, const KernelOptions& options, std::string& why_not) -> std::unique_ptr<Kernel> {
         if (!all_plain(node, why_not)) return nullptr;
         const DType dtype = node.inputs[1].dtype;
         if (!is_stored_type(dtype)) return declined(why_not, "the rows are " + to_string(node.inputs[1]));
         return with_stored_type(dtype, [&](auto number) -> std::unique_ptr<Kernel> {
           return std::make_unique<ProductSgdUpdate<decltype(number)>>(node, options.threads, isa);
         });
       }});
}

}  // namespace weft::native
