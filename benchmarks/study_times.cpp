// How long a study takes beside its trials: what it takes to ask a searcher for a trial, to store it, and to store its
// result, in a study of many trials; and to open a larger study.
//
//   cmake -B build -DWEFT_BENCHMARKS=ON && cmake --build build --target benchmark_study
//   build/benchmark_study                     # 1,000 trials for each searcher, and 10,000 to open: some minutes
//   build/benchmark_study 200 1000 tpe        # trials, trials of the study that is opened, searchers
//
// A line each: medians over the last trials, in milliseconds. The folder of the studies is made where TMPDIR says.
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "weft/base/clock.h"
#include "weft/base/rng.h"
#include "weft/library/library.h"
#include "weft/tune/study/study.h"

namespace weft::tune {
namespace {

namespace fs = std::filesystem;

constexpr int kMeasured = 21;  // trials

/// Numbers on both scales, integers and, where the searcher takes it, a choice.
Space space_for(const std::string& searcher) {
  std::vector<Dimension> dimensions = {log_real("optimizer.learning_rate", 1e-4, 1),
                                       real("optimizer.momentum", 0.5, 0.99),
                                       log_real("optimizer.weight_decay", 1e-6, 1e-2), integer("batch", 16, 256, 16),
                                       real("loss.label_smoothing", 0, 0.2)};
  if (searcher != "cma-es")
    dimensions.push_back(choice("optimizer.name", {std::string("sgd"), std::string("adamw"), std::string("lamb")}));
  return Space(std::move(dimensions));
}

StudySettings settings(const std::string& searcher, bool has_two_objectives) {
  StudySettings settings{
      .space = space_for(searcher), .recipe = "epochs = 3\n", .objectives = {{"validation_accuracy", true}}};
  if (has_two_objectives) settings.objectives.push_back({"parameters", false});
  settings.searcher = searcher;
  return settings;
}

/// A smooth result of the values with some noise, so that searchers have something to follow.
double result_of(const Space& space, const Point& point, int64_t number) {
  double sum = 0;
  for (size_t index = 0; index < space.size(); ++index)
    if (point[index]) sum += std::pow(space.to_unit(index, *point[index]) - 0.3, 2);
  RandomStream random(7, static_cast<uint64_t>(number));
  return 0.9 - 0.1 * sum + 0.001 * random.normal();
}

struct Times {
  double ask = 0, store = 0, tell = 0;  // seconds
};

/// One trial, as a tuner has it: chosen and claimed in a transaction, then written with its result.
Times run_trial(Study& study, const Searcher* searcher) {
  const StudySettings& settings = study.settings();
  Times times;
  const double begin = steady_seconds();
  const std::optional<StudyTrial> claimed = study.change([&](const std::vector<StudyTrial>& trials) {
    const double asked = steady_seconds();
    const auto number = static_cast<int64_t>(trials.size());
    StudyTrial trial{.number = number, .target = 3, .plan = {.parameters = 1000, .memory = 1'000'000, .epochs = 3}};
    if (searcher != nullptr) {
      const History history = history_of(settings, trials);
      const std::optional<Proposal> proposal = propose_new(*searcher, {settings.space, history, settings.seed});
      trial.values = settings.space.values(proposal.value().point);
      trial.generation = proposal->generation;
    } else {  // to fill a study quickly
      RandomStream random(3, static_cast<uint64_t>(number));
      std::vector<double> units;
      for (size_t index = 0; index < settings.space.size(); ++index) units.push_back(random.uniform());
      trial.values = settings.space.values(settings.space.from_unit(units));
    }
    times.ask = steady_seconds() - asked;
    return trial;
  });
  times.store = steady_seconds() - begin - times.ask;
  const double told = steady_seconds();
  StudyTrial trial = *claimed;
  const double result = result_of(settings.space, settings.space.point(trial.values), trial.number);
  trial.state = StudyTrial::State::finished;
  trial.results = {result};
  if (settings.objectives.size() > 1) trial.results.push_back(1000 * (1 - result));
  trial.curve = {{1, result - 0.1}, {2, result - 0.05}, {3, result}};
  trial.seconds = 1;
  study.update(trial);
  times.tell = steady_seconds() - told;
  return times;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// The last trials of so many are measured; those before them are filled in by chance.
void measure_searcher(const fs::path& folder, const std::string& name, int64_t trials, const Library& library) {
  const bool is_nsga = name == "nsga2";
  Study study = Study::create(folder / name, settings(name, is_nsga));
  const auto searcher = make_searcher(name, {.objectives = is_nsga ? 2 : 1, .library = &library});
  for (int64_t number = 0; number + kMeasured < trials; ++number) run_trial(study, nullptr);
  std::vector<double> asks, stores, tells, all;
  run_trial(study, searcher.get());  // a search that goes on learns what came before once
  for (int round = 1; round < kMeasured; ++round) {
    const Times times = run_trial(study, searcher.get());
    asks.push_back(times.ask);
    stores.push_back(times.store);
    tells.push_back(times.tell);
    all.push_back(times.ask + times.store + times.tell);
  }
  fmt::print("{:8} {:6} trials: ask {:8.2f}  store {:6.2f}  tell {:6.2f}  together {:8.2f} ms\n", name, trials,
             1e3 * median(asks), 1e3 * median(stores), 1e3 * median(tells), 1e3 * median(all));
  std::fflush(stdout);
}

void measure_opening(const fs::path& folder, int64_t trials) {
  {
    Study study = Study::create(folder / "large", settings("tpe", false));
    for (int64_t number = 0; number < trials; ++number) run_trial(study, nullptr);
  }
  std::vector<double> seconds;
  for (int round = 0; round < 5; ++round) {
    const double begin = steady_seconds();
    Study study = Study::open(folder / "large");
    if (static_cast<int64_t>(study.trials().size()) != trials) fmt::print("trials are missing\n");
    seconds.push_back(steady_seconds() - begin);
  }
  fmt::print("a study of {} trials opens in {:.1f} ms\n", trials, 1e3 * median(seconds));
}

int run(int count, char** arguments) {
  const int64_t trials = count > 1 ? std::stoll(arguments[1]) : 1000,
                large = count > 2 ? std::stoll(arguments[2]) : 10'000;
  std::vector<std::string> names(arguments + std::min(count, 3), arguments + count);
  if (names.empty())
    for (const SearcherEntry& entry : searcher_entries()) names.push_back(entry.name);
  std::string folder = (fs::temp_directory_path() / "weft-study-times-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("cannot make a folder for the studies");
  const Library library = standard_library();
  for (const std::string& name : names) measure_searcher(folder, name, trials, library);
  if (large > 0) measure_opening(folder, large);
  fs::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace weft::tune

int main(int count, char** arguments) try {
  return weft::tune::run(count, arguments);
} catch (const std::exception& error) {
  std::fprintf(stderr, "benchmark_study: %s\n", error.what());
  return 1;
}
