#include "weft/tune/space/space.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/names.h"

namespace weft::tune {

Dimension Dimension::when(std::string parent, std::vector<KeyValue> values) const {
  Dimension conditional = *this;
  conditional.condition = Condition{std::move(parent), std::move(values)};
  return conditional;
}

Dimension real(std::string name, double low, double high) {
  return {.name = std::move(name), .kind = Dimension::Kind::real, .low = low, .high = high};
}

Dimension log_real(std::string name, double low, double high) {
  return {.name = std::move(name), .kind = Dimension::Kind::real, .low = low, .high = high, .log = true};
}

Dimension integer(std::string name, int64_t low, int64_t high, int64_t step) {
  return {.name = std::move(name),
          .kind = Dimension::Kind::integer,
          .low = static_cast<double>(low),
          .high = static_cast<double>(high),
          .step = step};
}

Dimension log_integer(std::string name, int64_t low, int64_t high) {
  Dimension dimension = integer(std::move(name), low, high);
  dimension.log = true;
  return dimension;
}

Dimension choice(std::string name, std::vector<KeyValue> choices) {
  return {.name = std::move(name), .kind = Dimension::Kind::choice, .choices = std::move(choices)};
}

bool has_value(const Values& values, const std::string& name) {
  return std::any_of(values.begin(), values.end(), [&](const auto& one) { return one.first == name; });
}

const KeyValue& value_of(const Values& values, const std::string& name) {
  for (const auto& [known, value] : values)
    if (known == name) return value;
  std::vector<std::string> names;
  for (const auto& [known, value] : values) names.push_back(known);
  fail(ErrorKind::usage, "the point has no '{}'{}", name, suggestion(name, names));
}

double number_of(const Values& values, const std::string& name) {
  const KeyValue& value = value_of(values, name);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  fail(ErrorKind::usage, "'{}' is {}, which is no number", name, shown(value));
}

namespace {

void check_range(const Dimension& d) {
  if (!std::isfinite(d.low) || !std::isfinite(d.high))
    fail(ErrorKind::usage, "{}: a range from {} to {} has no end; give finite numbers", d.name, d.low, d.high);
  if (d.low > d.high)
    fail(ErrorKind::usage, "{}: the range from {} to {} is upside down; exchange its ends", d.name, d.low, d.high);
  if (d.log && d.low <= 0)
    fail(ErrorKind::usage, "{}: the logarithm of {} does not exist; begin the range above 0, or leave log away", d.name,
         d.low);
  if (d.kind != Dimension::Kind::integer) {
    if (d.low == d.high)
      fail(ErrorKind::usage, "{}: the range has a single value, {}; widen it, or set the key in the recipe", d.name,
           d.low);
    return;
  }
  if (d.low != std::floor(d.low) || d.high != std::floor(d.high) || std::abs(d.low) > 9e15 || std::abs(d.high) > 9e15)
    fail(ErrorKind::usage, "{}: a range of integers wants whole numbers, got {} and {}", d.name, d.low, d.high);
  if (d.step < 1) fail(ErrorKind::usage, "{}: the step {} is not above 0", d.name, d.step);
  if (d.log && d.step != 1)
    fail(ErrorKind::usage, "{}: a logarithmic range has no step; leave log or the step away", d.name);
}

void check_choices(const Dimension& d) {
  if (d.choices.empty()) fail(ErrorKind::usage, "{}: there is nothing to choose; give choices", d.name);
  for (size_t index = 0; index < d.choices.size(); ++index)
    if (std::find(d.choices.begin(), d.choices.begin() + static_cast<std::ptrdiff_t>(index), d.choices[index]) !=
        d.choices.begin() + static_cast<std::ptrdiff_t>(index))
      fail(ErrorKind::usage, "{}: the choice {} stands there twice", d.name, shown(d.choices[index]));
}

/// Each behind the dimension of its condition, otherwise in the order given.
std::vector<Dimension> parents_first(std::vector<Dimension> left) {
  std::vector<Dimension> ordered;
  const auto is_placed = [&](const Dimension& d) {
    return !d.condition || std::any_of(ordered.begin(), ordered.end(),
                                       [&](const Dimension& other) { return other.name == d.condition->name; });
  };
  while (!left.empty()) {
    const auto next = std::find_if(left.begin(), left.end(), is_placed);
    if (next == left.end())
      fail(ErrorKind::usage, "{}: its condition depends on itself, over '{}'", left.front().name,
           left.front().condition->name);
    ordered.push_back(std::move(*next));
    left.erase(next);
  }
  return ordered;
}

/// For which choices of the parent the dimension is there.
std::vector<bool> choices_of_condition(const Dimension& d, const Dimension& parent) {
  std::vector<bool> active(parent.choices.size(), false);
  for (const KeyValue& value : d.condition->values) {
    const auto found = std::find(parent.choices.begin(), parent.choices.end(), value);
    if (found == parent.choices.end())
      fail(ErrorKind::usage, "{}: its condition wants {} of '{}', which is none of its choices", d.name, shown(value),
           parent.name);
    active[static_cast<size_t>(found - parent.choices.begin())] = true;
  }
  return active;
}

}  // namespace

Space::Space(std::vector<Dimension> dimensions) {
  std::vector<std::string> names;
  for (const Dimension& d : dimensions) {
    if (std::find(names.begin(), names.end(), d.name) != names.end())
      fail(ErrorKind::usage, "{}: there are two ranges for it; leave one away", d.name);
    names.push_back(d.name);
    if (d.kind == Dimension::Kind::choice)
      check_choices(d);
    else
      check_range(d);
  }
  for (const Dimension& d : dimensions) {
    if (!d.condition) continue;
    const auto parent = std::find_if(dimensions.begin(), dimensions.end(),
                                     [&](const Dimension& other) { return other.name == d.condition->name; });
    if (parent == dimensions.end())
      fail(ErrorKind::usage, "{}: its condition names '{}', which is not searched{}", d.name, d.condition->name,
           suggestion(d.condition->name, names));
    if (parent->kind != Dimension::Kind::choice)
      fail(ErrorKind::usage, "{}: its condition names '{}', which is no list of choices", d.name, d.condition->name);
    if (d.condition->values.empty())
      fail(ErrorKind::usage, "{}: its condition on '{}' has no values", d.name, d.condition->name);
  }
  dimensions_ = parents_first(std::move(dimensions));
  for (Dimension& d : dimensions_) {
    if (d.kind == Dimension::Kind::integer)  // the last value that the steps reach
      d.high = d.low + std::floor((d.high - d.low) / static_cast<double>(d.step)) * static_cast<double>(d.step);
    parents_.push_back(d.condition ? find(d.condition->name) : std::nullopt);
    active_choices_.push_back(parents_.back() ? choices_of_condition(d, dimensions_[*parents_.back()])
                                              : std::vector<bool>());
  }
}

std::optional<size_t> Space::find(const std::string& name) const {
  for (size_t index = 0; index < dimensions_.size(); ++index)
    if (dimensions_[index].name == name) return index;
  return std::nullopt;
}

bool Space::is_active(const Point& point, size_t index) const {
  if (!parents_[index]) return true;
  const std::optional<double>& parent = point[*parents_[index]];
  return parent && active_choices_[index][static_cast<size_t>(*parent)];
}

void Space::drop_inactive(Point& point) const {
  for (size_t index = 0; index < size(); ++index)
    if (!is_active(point, index)) point[index].reset();
}

namespace {

/// The ends of a range along which integers have pieces of equal length, logarithms taken.
std::pair<double, double> ends_of(const Dimension& d) {
  if (d.kind == Dimension::Kind::choice) return {0, static_cast<double>(d.choices.size())};
  const double half = d.kind == Dimension::Kind::integer ? 0.5 * static_cast<double>(d.step) : 0;
  return d.log ? std::pair(std::log(d.low - half), std::log(d.high + half)) : std::pair(d.low - half, d.high + half);
}

}  // namespace

double Space::to_unit(size_t index, double coordinate) const {
  const Dimension& d = dimensions_[index];
  const auto [low, high] = ends_of(d);
  const double along = d.kind == Dimension::Kind::choice ? coordinate + 0.5 : d.log ? std::log(coordinate) : coordinate;
  return (along - low) / (high - low);
}

double Space::from_unit(size_t index, double unit) const {
  const Dimension& d = dimensions_[index];
  const auto [low, high] = ends_of(d);
  const double along = low + std::clamp(unit, 0.0, 1.0) * (high - low);
  if (d.kind == Dimension::Kind::choice) return std::min(std::floor(along), high - 1);
  const double number = d.log ? std::exp(along) : along;
  if (d.kind == Dimension::Kind::real) return std::clamp(number, d.low, d.high);
  const auto step = static_cast<double>(d.step);
  return std::clamp(d.low + std::round((number - d.low) / step) * step, d.low, d.high);
}

Point Space::from_unit(const std::vector<double>& units) const {
  Point point(size());
  for (size_t index = 0; index < size(); ++index)
    if (is_active(point, index)) point[index] = from_unit(index, units[index]);
  return point;
}

std::pair<double, double> Space::piece(size_t index, double coordinate) const {
  const Dimension& d = dimensions_[index];
  const auto [low, high] = ends_of(d);
  if (d.kind == Dimension::Kind::choice) return {coordinate / high, (coordinate + 1) / high};
  const double half = 0.5 * static_cast<double>(d.step);
  const double first = d.log ? std::log(coordinate - half) : coordinate - half;
  const double last = d.log ? std::log(coordinate + half) : coordinate + half;
  return {(first - low) / (high - low), (last - low) / (high - low)};
}

size_t Space::count(size_t index) const {
  const Dimension& d = dimensions_[index];
  if (d.kind == Dimension::Kind::choice) return d.choices.size();
  if (d.kind == Dimension::Kind::real) return 0;
  return static_cast<size_t>((d.high - d.low) / static_cast<double>(d.step)) + 1;
}

std::optional<size_t> Space::count() const {
  // A dimension with a condition is counted as if it were always there: an upper bound, exact without conditions.
  constexpr size_t kMost = size_t{1} << 40;
  size_t points = 1;
  for (size_t index = 0; index < size(); ++index) {
    const size_t values = count(index);
    if (values == 0 || values > kMost / points) return std::nullopt;
    points *= values;
  }
  return points;
}

Values Space::values(const Point& point) const {
  Values values;
  for (size_t index = 0; index < size(); ++index) {
    if (!point[index]) continue;
    const Dimension& d = dimensions_[index];
    const double coordinate = *point[index];
    if (d.kind == Dimension::Kind::choice)
      values.emplace_back(d.name, d.choices[static_cast<size_t>(coordinate)]);
    else if (d.kind == Dimension::Kind::integer)
      values.emplace_back(d.name, static_cast<int64_t>(coordinate));
    else
      values.emplace_back(d.name, coordinate);
  }
  return values;
}

Point Space::point(const Values& values) const {
  Point point(size());
  for (const auto& [name, value] : values) {
    const std::optional<size_t> index = find(name);
    if (!index) fail(ErrorKind::data, "'{}' is no dimension of this space", name);
    const Dimension& d = dimensions_[*index];
    if (d.kind == Dimension::Kind::choice) {
      const auto found = std::find(d.choices.begin(), d.choices.end(), value);
      if (found == d.choices.end()) fail(ErrorKind::data, "{} is no choice of '{}'", shown(value), name);
      point[*index] = static_cast<double>(found - d.choices.begin());
      continue;
    }
    const auto* whole = std::get_if<int64_t>(&value);
    const auto* real = std::get_if<double>(&value);
    if (whole == nullptr && real == nullptr) fail(ErrorKind::data, "'{}' wants a number, got {}", name, shown(value));
    const double number = whole != nullptr ? static_cast<double>(*whole) : *real;
    if (!(number >= d.low && number <= d.high))
      fail(ErrorKind::data, "{} is outside of the range of '{}', {} to {}", number, name, d.low, d.high);
    point[*index] = number;
  }
  for (size_t index = 0; index < size(); ++index)
    if (is_active(point, index) != point[index].has_value())
      fail(ErrorKind::data, "'{}' {}", dimensions_[index].name,
           point[index] ? "has a value although its condition does not hold" : "has no value");
  return point;
}

}  // namespace weft::tune
