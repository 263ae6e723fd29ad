// cast: vector loops for the pairs of types that networks use; any other pair element by element. In any layout that
// operand and result share: what fills blocks up is zero in every type.
#include "weft/cpu/native/elementwise/cast.h"

#include "weft/base/parallel.h"
#include "weft/cpu/native/support/families.h"
#include "weft/tensor/element.h"

namespace weft::native {

namespace {

struct Loops {
  CastRange (*of)(DType from, DType to);  // null where no loop has been written for the pair
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/elementwise/cast_loops.h"
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

constexpr int64_t kGrain = 16384;  // elements below which a second thread costs more than it brings

class Cast : public Kernel {
 public:
  Cast(DType from, DType to, int64_t count, int threads, Isa isa)
      : from_(from), to_(to), count_(count), threads_(threads), range_(loops_for(isa).of(from, to)) {}

  std::string name() const override { return "native:cast"; }

  void run(const KernelArguments& arguments) override {
    const void* const from = arguments.inputs[0];
    void* const to = arguments.outputs[0];
    parallel_for(threads_, count_, kGrain, [&](int64_t begin, int64_t end) {
      if (range_ != nullptr)
        range_(to, from, begin, end);
      else
        for (int64_t i = begin; i < end; ++i) convert_element(from_, from, i, to_, to, i);
    });
  }

 private:
  const DType from_, to_;
  const int64_t count_;
  const int threads_;
  const CastRange range_;
};

}  // namespace

CastRange cast_range(DType from, DType to, Isa isa) { return loops_for(isa).of(from, to); }

void add_cast(KernelTable& table, Isa isa) {
  table.add("cast", {"native",
                     [isa](const NodeSignature& node, const KernelOptions& options,
                           std::string& why_not) -> std::unique_ptr<Kernel> {
                       const TensorType &from = node.inputs[0], &to = node.outputs[0];
                       if (from.layout != to.layout) return declined(why_not, "operand and result lie in two layouts");
                       const int64_t count = storage_elements(to.shape, to.layout);
                       return std::make_unique<Cast>(from.dtype, to.dtype, count, options.threads, isa);
                     }});
}

}  // namespace weft::native
