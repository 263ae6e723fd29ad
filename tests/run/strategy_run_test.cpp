// Runs whose strategy weft chooses, on ranks that here are threads.
#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/ranks_rig.h"
#include "weft/base/files.h"
#include "weft/run/run_directory.h"
#include "weft/run/summary.h"

namespace weft::run {
namespace {

data::DatasetInfo drawn_words() {
  return {.name = "drawn",
          .sample_shape = {32},
          .classes = 24,
          .task = "language_model",
          .sample_dtype = DType::i32,
          .target_shape = {32}};
}

class StrategyRun : public RanksTest {
 protected:
  static spec::RunSpec spec(const std::string& memory_limit = "") {
    spec::RunSpec spec = drawn_spec("transformer_lm", 1, 64, 0.001);
    spec.model.options = {{"layers", "4"}, {"heads", "4"}, {"width", "64"}};
    spec.optimizer.name = "adamw";
    spec.strategy = "auto";
    spec.memory_limit = memory_limit;
    spec::resolve(spec);
    return spec;
  }
  static Library library() { return drawn_library(drawn_words(), 320, 64); }
  Summary summary(const std::string& run) const {
    return parse_summary(read_text(path(run + "/summary.json"))).value();
  }
};

TEST_F(StrategyRun, StatesAndActivationsThatAreThreeTimesARanksMemoryTrain) {
  spec::RunSpec alone = spec();
  alone.strategy = "manual";
  start_run(library(), alone, path("alone"), {});
  const int64_t whole = summary("alone").planned_total_bytes;
  for (const int ranks : {2, 4}) {
    const std::string name = fmt::format("on{}", ranks);
    train(library(), spec(fmt::format("{}B", whole / 3)), one_host(ranks), name);
    EXPECT_LE(summary(name).planned_total_bytes, whole / 3) << ranks;
    EXPECT_EQ(records(name, "step").size(), records("alone", "step").size());
  }
}

TEST_F(StrategyRun, TheChosenKeysStandInTheRecipeAndResumeTakesThem) {
  const Library data = library();
  on_ranks(one_host(2),
           [&](const RunOptions& given) { return start_run(data, spec(), path("run"), stopped_after(given, 2)); });
  const spec::RunSpec kept = RunDirectory::open(path("run")).read_spec(data);
  EXPECT_EQ(kept.strategy, "manual");
  EXPECT_EQ(kept.batch * kept.accumulate, 64);
  const RunOutcome outcome =
      on_ranks(one_host(2), [&](const RunOptions& options) { return resume_run(data, path("run"), 1, options); });
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(RunDirectory::open(path("run")).read_spec(data), kept);
}

TEST_F(StrategyRun, TheTableIsAmongTheLinesForTheUser) {
  std::string lines;
  const Library data = library();
  start_run(data, spec(), path("run"), {.note = [&](const std::string& line) { lines += line + "\n"; }});
  for (const char* part : {"strategy of 'transformer_lm' on 1 rank of", "chosen", "above the lower bound"})
    EXPECT_NE(lines.find(part), std::string::npos) << part << " not in: " << lines;
}

TEST_F(StrategyRun, ALimitThatNothingMeetsIsAnErrorWithTheLeast) {
  const std::string message = test::error_of([&] { train(library(), spec("1MB"), one_host(2), "run"); });
  EXPECT_NE(message.find("strategy = auto: no strategy trains 'transformer_lm'"), std::string::npos) << message;
  EXPECT_NE(message.find("give --memory-limit "), std::string::npos) << message;
}

}  // namespace
}  // namespace weft::run
