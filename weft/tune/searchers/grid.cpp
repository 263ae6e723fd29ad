// Every combination of some values of each dimension, in an order by chance: a search that ends early has then seen
// something of each value.
#include <algorithm>
#include <utility>

#include "weft/base/error.h"
#include "weft/tune/searchers/entries.h"
#include "weft/tune/space/random.h"

namespace weft::tune {

namespace {

constexpr size_t kMostPoints = 1'000'000;

/// The values of one dimension in the grid.
std::vector<double> levels_of(const Space& space, size_t index, int64_t levels) {
  const Dimension& d = space[index];
  const size_t count = space.count(index);
  std::vector<double> values;
  if (d.kind == Dimension::Kind::choice) {
    for (size_t value = 0; value < count; ++value) values.push_back(static_cast<double>(value));
  } else if (count > 0 && (levels == 0 || count <= static_cast<size_t>(levels))) {
    for (size_t value = 0; value < count; ++value)
      values.push_back(d.low + static_cast<double>(value * static_cast<size_t>(d.step)));
  } else {
    const double first = space.to_unit(index, d.low), last = space.to_unit(index, d.high);
    for (int64_t level = 0; level < levels; ++level) {
      const double share = levels == 1 ? 0.5 : static_cast<double>(level) / static_cast<double>(levels - 1);
      const double value = space.from_unit(index, first + share * (last - first));
      if (values.empty() || values.back() != value) values.push_back(value);
    }
  }
  return values;
}

}  // namespace

std::optional<std::vector<Point>> grid_points(const Space& space, int64_t levels, size_t most) {
  std::vector<Point> points = {Point(space.size())};
  for (size_t index = 0; index < space.size(); ++index) {
    const std::vector<double> values = levels_of(space, index, levels);
    std::vector<Point> longer;
    for (const Point& point : points) {
      if (!space.is_active(point, index)) {
        longer.push_back(point);
        continue;
      }
      for (const double value : values) longer.emplace_back(point)[index] = value;
      if (longer.size() > most) return std::nullopt;
    }
    points = std::move(longer);
  }
  return points;
}

namespace {

class GridSearcher : public Searcher {
 public:
  explicit GridSearcher(int64_t levels) : levels_(levels) {}

  std::optional<Proposal> ask(const SearchState& state) const override {
    std::optional<std::vector<Point>> points = grid_points(state.space, levels_, kMostPoints);
    if (!points)
      fail(ErrorKind::usage,
           "a grid of this space has more than {} points; search fewer keys, or take another searcher", kMostPoints);
    const size_t number = state.history.size();
    if (number >= points->size()) return std::nullopt;
    Random random(state.seed, 0);
    for (size_t index = 0; index <= number; ++index)  // Fisher and Yates, as far as it is needed
      std::swap((*points)[index], (*points)[index + random.below(points->size() - index)]);
    return Proposal{(*points)[number]};
  }

 private:
  int64_t levels_;
};

}  // namespace

std::unique_ptr<Searcher> make_grid_searcher(const SearcherOptions& options) {
  if (options.grid_levels < 1) fail(ErrorKind::usage, "a grid wants at least one level, got {}", options.grid_levels);
  return std::make_unique<GridSearcher>(options.grid_levels);
}

}  // namespace weft::tune
