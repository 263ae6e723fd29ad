// Groups of ranks by host, and operands in memory that peers see or do not, for the tests of collectives.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "weft/comm/collectives.h"
#include "weft/comm/schedules/schedule.h"
#include "weft/tensor/tensor.h"

namespace weft::comm {

inline const std::vector<std::vector<std::string>>& host_groups() {
  static const std::vector<std::vector<std::string>> groups = {
      {"a"},
      {"a", "a"},
      {"a", "b"},
      {"a", "a", "a"},
      {"a", "b", "c"},
      {"a", "a", "b", "b"},
      {"a", "b", "a", "b"},
      {"a", "a", "a", "b"},
      {"a", "a", "a", "a"},
      {"a", "a", "b", "b", "c", "c", "c"},
      {"a", "b", "c", "d", "e"},
      {"a", "a", "a", "a", "a", "a", "a", "a"},
  };
  return groups;
}

/// One tensor per entry of `elements`.
struct Operands {
  std::vector<std::shared_ptr<std::byte>> owners;
  std::vector<void*> tensors;

  Operands(Collectives& collectives, DType dtype, const std::vector<int64_t>& elements, bool shared) {
    for (const int64_t count : elements) {
      const int64_t bytes = byte_size(dtype, std::max<int64_t>(count, 1));
      owners.push_back(shared ? collectives.allocate(bytes) : allocate_aligned(bytes));
      tensors.push_back(owners.back().get());
    }
  }
};

/// Empty, or two actions that touch the same elements, of which one writes, and do not wait for each other.
inline std::string find_conflict(const Schedule& schedule) {
  const auto& actions = schedule.actions;
  std::vector<std::vector<bool>> before(actions.size());  // all that an action waits for, also through others
  for (size_t a = 0; a < actions.size(); ++a) {
    before[a].assign(actions.size(), false);
    for (const int32_t earlier : actions[a].after) {
      const auto e = static_cast<size_t>(earlier);
      if (e >= a) return "an action waits for a later one";
      before[a][e] = true;
      for (size_t i = 0; i < e; ++i) before[a][i] = before[a][i] || before[e][i];
    }
  }
  for (size_t w = 0; w < actions.size(); ++w)
    for (size_t other = 0; other < actions.size(); ++other) {
      if (actions[w].kind == ActionKind::send || other == w) continue;
      if (actions[other].begin >= actions[w].end || actions[w].begin >= actions[other].end) continue;
      if (!before[w][other] && !before[other][w])
        return "actions " + std::to_string(other) + " and " + std::to_string(w) + " touch the same elements";
    }
  return "";
}

}  // namespace weft::comm
