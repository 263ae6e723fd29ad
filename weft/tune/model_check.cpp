#include "weft/tune/model_check.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/models/model.h"
#include "weft/program/run_data.h"
#include "weft/tune/space/random.h"
#include "weft/tune/trials/trial_plan.h"

namespace weft::tune {

namespace {

constexpr int64_t kTries = 16;  // with other values of the model's other keys

bool is_of_model(const std::string& key) { return key.starts_with("model."); }

/// Each choice, or both ends and one between: a model may want whole numbers.
std::vector<double> coordinates(const Space& space, size_t index) {
  constexpr double kBetween = 0.37;
  const Dimension& dimension = space[index];
  if (dimension.kind != Dimension::Kind::choice)
    return {dimension.low, dimension.high, space.from_unit(index, kBetween)};
  std::vector<double> all;
  for (size_t choice = 0; choice < dimension.choices.size(); ++choice) all.push_back(static_cast<double>(choice));
  return all;
}

/// Sets what the condition of the dimension asks for, and of that in turn.
void make_active(const Space& space, Point& point, size_t index) {
  const std::optional<Condition>& condition = space[index].condition;
  if (!condition) return;
  const size_t parent = space.find(condition->name).value();
  const std::vector<KeyValue>& choices = space[parent].choices;
  const auto found = std::find(choices.begin(), choices.end(), condition->values.front());
  point[parent] = static_cast<double>(found - choices.begin());
  make_active(space, point, parent);
}

/// The keys of a model with this value: the first time alone, then with others as they are drawn.
Values model_values(const Space& space, size_t index, double coordinate, int64_t number) {
  Random random(0, number);
  Point point(space.size());
  for (size_t other = 0; other < space.size(); ++other) {
    const double unit = random.uniform();
    if (number > 0 && is_of_model(space[other].name)) point[other] = space.from_unit(other, unit);
  }
  point[index] = coordinate;
  make_active(space, point, index);
  space.drop_inactive(point);
  Values values;
  for (auto& value : space.values(point))
    if (is_of_model(value.first)) values.push_back(std::move(value));
  return values;
}

void build(const StudySettings& settings, const Values& values, const data::DatasetInfo& info, const Library& library) {
  const spec::RunSpec spec = trial_spec(settings, values, library);
  models::build(library.ops, models::find_model(library.models, spec.model.name),
                program::model_input({.info = info, .statistics = {}}, spec::StepShape(spec.batch)), spec.model.options,
                models::Mode::training);
}

}  // namespace

void require_models(const StudySettings& settings, const std::vector<RangeText>& ranges, const data::DatasetInfo& info,
                    const Library& library) {
  const Space& space = settings.space;
  const auto keys = std::count_if(space.dimensions().begin(), space.dimensions().end(),
                                  [](const Dimension& dimension) { return is_of_model(dimension.name); });
  for (size_t index = 0; index < space.size(); ++index) {
    const std::string& name = space[index].name;
    if (!is_of_model(name)) continue;
    for (const double coordinate : coordinates(space, index)) {
      std::string trouble;
      for (int64_t number = 0; number < (keys > 1 ? kTries : 1); ++number) {
        try {
          build(settings, model_values(space, index, coordinate, number), info, library);
          trouble.clear();
          break;
        } catch (const Error& error) {
          if (trouble.empty()) trouble = error.what();
        }
      }
      if (trouble.empty()) continue;
      const auto range = std::find_if(ranges.begin(), ranges.end(), [&](const auto& one) { return one.key == name; });
      const bool wants_whole = coordinate != std::floor(coordinate);
      fail(ErrorKind::usage, "{}: {}{}", range != ranges.end() ? range->where : name, trouble,
           wants_whole ? "; for whole numbers write int:LOW:HIGH or log-int:LOW:HIGH" : "");
    }
  }
}

}  // namespace weft::tune
