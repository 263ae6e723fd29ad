// weft rates, and what reads the file that it writes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "weft/base/files.h"
#include "weft/device/cost_model.h"

namespace weft::cli_tests {
namespace {

using RatesCommand = ProgramTest;

TEST_F(RatesCommand, PrintsAndWritesAProfileThatPlansRead) {
  const Outcome rates = weft({"rates", "--threads", "1", "--output", "rates.toml"});
  ASSERT_EQ(rates.code, 0) << rates.err;
  EXPECT_EQ(read_text(path("rates.toml")), rates.out);
  EXPECT_EQ(parse_device_profile(rates.out, "rates.toml").name, "measured");
  const Outcome bench = weft({"bench", "mlp", "--plan-only", "--json", "--set", "cost_profile=rates.toml"});
  ASSERT_EQ(bench.code, 0) << bench.err;
  EXPECT_EQ(nlohmann::json::parse(bench.out)["costs"], "rated by the profile 'measured'");
}

TEST_F(RatesCommand, AFileThatIsNoProfileIsNamedWithItsLine) {
  write_atomically(path("rates.toml"), "name = \"x\"\nspeed = 3\n");
  const Outcome bench = weft({"bench", "mlp", "--plan-only", "--set", "cost_profile=rates.toml"});
  EXPECT_EQ(bench.code, 1);
  EXPECT_NE(bench.err.find("rates.toml:2: a device profile has no key 'speed'"), std::string::npos) << bench.err;
}

}  // namespace
}  // namespace weft::cli_tests
