// What a search may choose: named dimensions, each a range of numbers or a list of choices, some of them only where
// another one has a certain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/library/key.h"

namespace weft::tune {

/// The dimension exists only where the choice `name` has one of these values.
struct Condition {
  std::string name;
  std::vector<KeyValue> values;
  friend bool operator==(const Condition&, const Condition&) = default;
};

struct Dimension {
  enum class Kind { real, integer, choice };
  std::string name;
  Kind kind = Kind::real;
  double low = 0, high = 1;            // of numbers, both ends included
  bool log = false;                    // as much search between 0.001 and 0.01 as between 0.1 and 1
  int64_t step = 1;                    // of integers: low, low + step, ...
  std::vector<KeyValue> choices = {};  // of choices
  std::optional<Condition> condition = {};

  /// The same dimension, for certain values of a choice only.
  Dimension when(std::string parent, std::vector<KeyValue> values) const;
  friend bool operator==(const Dimension&, const Dimension&) = default;
};

Dimension real(std::string name, double low, double high);
Dimension log_real(std::string name, double low, double high);
Dimension integer(std::string name, int64_t low, int64_t high, int64_t step = 1);
Dimension log_integer(std::string name, int64_t low, int64_t high);
Dimension choice(std::string name, std::vector<KeyValue> choices);

/// A place in a space, a coordinate for each dimension: the number, or of a choice its index. Without a value where the
/// condition of the dimension does not hold.
using Point = std::vector<std::optional<double>>;

/// A point by names, without the dimensions that it does not have.
using Values = std::vector<std::pair<std::string, KeyValue>>;

/// Of a point by its names, as the caller of a search has it.
double number_of(const Values& values, const std::string& name);
/// Whether the point has this dimension.
bool has_value(const Values& values, const std::string& name);
const KeyValue& value_of(const Values& values, const std::string& name);

class Space {
 public:
  Space() = default;
  /// Error(usage) where ranges are upside down, a logarithm has no lower end above 0, names are doubled, a list has no
  /// choices or one twice, or a condition names no choice of the space or depends on itself. Puts each dimension behind
  /// that of its condition.
  explicit Space(std::vector<Dimension> dimensions);

  size_t size() const { return dimensions_.size(); }
  const Dimension& operator[](size_t index) const { return dimensions_[index]; }
  const std::vector<Dimension>& dimensions() const { return dimensions_; }
  /// nullopt where there is no such dimension.
  std::optional<size_t> find(const std::string& name) const;

  /// Whether the point, of which the dimensions before `index` are set, has this dimension.
  bool is_active(const Point& point, size_t index) const;
  /// Removes the coordinates of dimensions whose conditions do not hold.
  void drop_inactive(Point& point) const;

  /// In [0, 1] along the dimension, logarithms taken; each integer and each choice has a piece of equal length.
  double to_unit(size_t index, double coordinate) const;
  double from_unit(size_t index, double unit) const;
  /// Of unit coordinates of all dimensions.
  Point from_unit(const std::vector<double>& units) const;

  /// The unit coordinates that become this value of integers or choices.
  std::pair<double, double> piece(size_t index, double coordinate) const;

  /// How many values the dimension has; 0 for a real one.
  size_t count(size_t index) const;
  /// How many points the space has; nullopt where there are too many to list.
  std::optional<size_t> count() const;

  Values values(const Point& point) const;
  /// Error(data) where these are no values of the space.
  Point point(const Values& values) const;

 private:
  std::vector<Dimension> dimensions_;
  std::vector<std::optional<size_t>> parents_;     // of the conditions
  std::vector<std::vector<bool>> active_choices_;  // of the parent's choices: for which the dimension is there
};

/// One line of JSON each; reading what was printed gives an equal space. Error(data) for anything else.
std::string print_space(const Space& space);
Space parse_space(const std::string& text);

/// {"optimizer.learning_rate":0.1}, and back. Error(data) for anything else.
std::string print_values(const Values& values);
Values parse_values(const std::string& text);

}  // namespace weft::tune
