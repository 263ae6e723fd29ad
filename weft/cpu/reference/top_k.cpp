// The largest or smallest elements along an axis: a partial sort of their places.
#include <algorithm>
#include <numeric>
#include <vector>

#include "weft/cpu/reference/index_walks.h"
#include "weft/cpu/reference/reference.h"

namespace weft::reference {
namespace {

/// Whether a comes before b: a NaN as the largest of all.
template <typename T>
bool is_before(T a, T b, bool largest) {
  const bool a_is_nan = a != a, b_is_nan = b != b;
  if (a_is_nan || b_is_nan) return largest ? a_is_nan && !b_is_nan : b_is_nan && !a_is_nan;
  return largest ? a > b : a < b;
}

Body prepare_top_k(const NodeSignature& node) {
  const int64_t axis = node.attributes.integer("axis"), k = node.attributes.integer("k");
  const bool largest = node.attributes.boolean("largest");
  const AxisGrid from(node.inputs[0].shape, axis), to(node.outputs[0].shape, axis);
  return visit_number(node.inputs[0].dtype, [&](auto zero) -> Body {
    using T = decltype(zero);
    const auto length = static_cast<size_t>(from.length);
    return [=, type = node.outputs[0], line = std::vector<T>(length),
            places = std::vector<int64_t>(length)](const KernelArguments& call) mutable {
      clear_bits_behind(type, call.outputs[0]);
      from.for_each_line([&](int64_t o, int64_t i) {
        for (int64_t at = 0; at < from.length; ++at)
          line[static_cast<size_t>(at)] = load_as<T>(type.dtype, call.inputs[0], from(o, at, i));
        std::iota(places.begin(), places.end(), int64_t{0});
        std::partial_sort(places.begin(), places.begin() + k, places.end(), [&](int64_t a, int64_t b) {
          const T in_a = line[static_cast<size_t>(a)], in_b = line[static_cast<size_t>(b)];
          if (is_before(in_a, in_b, largest)) return true;
          return !is_before(in_b, in_a, largest) && a < b;
        });
        for (int64_t at = 0; at < k; ++at) {
          const int64_t place = places[static_cast<size_t>(at)];
          copy_element(type.dtype, call.inputs[0], from(o, place, i), call.outputs[0], to(o, at, i));
          output<int64_t>(call, 1)[to(o, at, i)] = place;
        }
      });
    };
  });
}

}  // namespace

void add_top_k(KernelTable& table) { add_plain(table, "top_k", prepare_top_k, Accepts::any_dtype); }

}  // namespace weft::reference
