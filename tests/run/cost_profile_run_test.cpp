// Runs that are planned by other rates than the default ones: what they keep, and what they go on with.
#include <gtest/gtest.h>

#include "tests/support/ranks_rig.h"
#include "weft/base/files.h"

namespace weft::run {
namespace {

class CostProfileRun : public RanksTest {
 protected:
  spec::RunSpec spec(const std::string& profile) const {
    spec::RunSpec spec = drawn_spec("lenet5", 2, 64, 0.01);
    spec.cost_profile = profile;
    spec::resolve(spec);
    return spec;
  }
  void begin(const std::string& profile, const std::string& run, const Hosts& hosts = {}) const {
    on_ranks(hosts, [&](const RunOptions& options) {
      return start_run(library_, spec(profile), path(run), stopped_after(options, 2));
    });
  }
  RunOutcome go_on(const std::string& run, const Hosts& hosts = {}) const {
    return on_ranks(hosts, [&](const RunOptions& options) { return resume_run(library_, path(run), 1, options); });
  }
  std::string costs_of(const std::string& run) const {
    return nlohmann::json::parse(read_text(path(run + "/plan.json"))).at("costs");
  }
  std::string kept(const std::string& run) const { return path(run + "/cost_profile.toml"); }

  const Library library_ = drawn_library(drawn_images(), 320, 70);
};

TEST_F(CostProfileRun, ByDefaultNothingIsKept) {
  begin("default", "run");
  EXPECT_FALSE(std::filesystem::exists(kept("run")));
  EXPECT_EQ(costs_of("run"), "rated by the profile 'default'");
}

TEST_F(CostProfileRun, MeasuredRatesAreKeptAndUsedAgain) {
  begin("measured", "run");
  const std::string measured = read_text(kept("run"));
  EXPECT_EQ(parse_device_profile(measured, "kept").name, "measured");
  EXPECT_TRUE(go_on("run").finished);
  EXPECT_EQ(read_text(kept("run")), measured);
}

TEST_F(CostProfileRun, ARunGoesOnByTheRatesThatItKeeps) {
  begin("measured", "run");
  DeviceProfile edited = parse_device_profile(read_text(kept("run")), "kept");
  edited.name = "edited";
  write_atomically(kept("run"), print_device_profile(edited));
  EXPECT_TRUE(go_on("run").finished);
  EXPECT_EQ(costs_of("run"), "rated by the profile 'edited'");
}

TEST_F(CostProfileRun, RanksGoOnByTheFirstOnesRates) {
  begin("measured", "run", one_host(2));
  const std::string measured = read_text(kept("run"));
  EXPECT_TRUE(go_on("run", one_host(2)).finished);
  EXPECT_EQ(read_text(kept("run")), measured);
}

TEST_F(CostProfileRun, AKeptFileThatIsDamagedIsAnError) {
  begin("measured", "run");
  const std::string whole = read_text(kept("run"));
  write_atomically(path("run/cost_profile.toml"), whole.substr(0, whole.size() - 9));
  expect_error([&] { go_on("run"); }, ErrorKind::data, {"cost_profile.toml:6: ", "cut off", "start a new run"});
  std::string changed = whole;
  changed[changed.find("= ") + 3] ^= 1;
  write_atomically(path("run/cost_profile.toml"), changed);
  expect_error([&] { go_on("run"); }, ErrorKind::data, {"cost_profile.toml' is damaged", "by its checksum"});
}

TEST_F(CostProfileRun, AKeptFileThatIsGoneIsAnError) {
  begin("measured", "run");
  std::filesystem::remove(kept("run"));
  expect_error([&] { go_on("run"); }, ErrorKind::data, {"cost_profile.toml' is gone", "put it back"});
}

TEST_F(CostProfileRun, ARunOfBeforeThereWereProfilesGoesOnByTheDefaultOne) {
  begin("default", "run");
  std::string recipe = read_text(path("run/spec.toml"));
  const size_t at = recipe.find("cost_profile");
  recipe.erase(at, recipe.find('\n', at) + 1 - at);
  write_atomically(path("run/spec.toml"), recipe);
  EXPECT_TRUE(go_on("run").finished);
  EXPECT_EQ(costs_of("run"), "rated by the profile 'default'");
}

TEST_F(CostProfileRun, AFilesRatesOutliveTheFile) {
  DeviceProfile profile = default_profile();
  profile.name = "from a file";
  write_atomically(path("rates.toml"), print_device_profile(profile));
  begin(path("rates.toml"), "run");
  std::filesystem::remove(path("rates.toml"));
  EXPECT_TRUE(go_on("run").finished);
  EXPECT_EQ(costs_of("run"), "rated by the profile 'from a file'");
}

}  // namespace
}  // namespace weft::run
