#include "weft/report/op_class.h"

namespace weft::report {

std::string_view class_of(const OpDef& op) {
  if (!op.work.empty()) return op.work;
  return op.layout_rule == LayoutRule::elementwise ? "elementwise" : "other";
}

}  // namespace weft::report
