#include "weft/program/cost_profile.h"

#include <gmock/gmock.h>

#include "tests/support/files_for_tests.h"
#include "weft/base/files.h"
#include "weft/comm/local/local_group.h"
#include "weft/comm/on_all_ranks.h"

namespace weft::program {
namespace {

using testing::HasSubstr;

class CostProfileTest : public FilesTest {
 protected:
  /// Of these rates, as a file; its path.
  std::string write_profile(const std::string& name) const {
    DeviceProfile profile = default_profile();
    profile.name = name;
    profile.call_seconds = 1e-3;
    write_atomically(path(name), print_device_profile(profile));
    return path(name);
  }
  const Library library_ = standard_library();
};

TEST_F(CostProfileTest, TheDefaultOneKeepsNoText) {
  const CostProfile profile = agreed_profile(nullptr, library_, kDefaultProfile, 1);
  EXPECT_EQ(profile.text, "");
  EXPECT_EQ(profile.costs->describe(), "rated by the profile 'default'");
}

TEST_F(CostProfileTest, AFileIsReadWithAllItsDigits) {
  const CostProfile profile = agreed_profile(nullptr, library_, write_profile("mine"), 1);
  EXPECT_EQ(profile.text, read_text(path("mine")));
  EXPECT_EQ(profile.costs->describe(), "rated by the profile 'mine'");
}

TEST_F(CostProfileTest, AFileIsFoundFromWhereverTheRunGoesOn) {
  EXPECT_EQ(with_absolute_path("measured"), "measured");
  EXPECT_EQ(with_absolute_path("rates.toml"), (std::filesystem::current_path() / "rates.toml").string());
}

TEST_F(CostProfileTest, MeasuringAsksTheDevice) {
  Library library = library_;
  const auto make_cpu = library.device.make;
  library.device.make = [&](DeviceRequest request) -> std::unique_ptr<Device> {
    EXPECT_EQ(request.threads, 1);
    return make_cpu(std::move(request));
  };
  const CostProfile profile = agreed_profile(nullptr, library, kMeasuredProfile, 1);
  const DeviceProfile rates = parse_device_profile(profile.text, "measured");
  EXPECT_EQ(rates.name, "measured");
  EXPECT_GT(rates.flops_per_second, 1e8);
  EXPECT_GT(rates.call_seconds, 0);
  EXPECT_LT(rates.call_seconds, 1e-2);
}

TEST_F(CostProfileTest, TheFirstRankDecidesForAll) {
  const std::string first = write_profile("first");
  std::vector<std::string> texts(2);
  comm::run_ranks({"host", "host"}, [&](comm::Communicator& ranks) {
    const bool is_first = ranks.rank() == 0;
    const CostProfile profile = agreed_profile(&ranks, library_, is_first ? first : path("nowhere"), 1);
    texts[static_cast<size_t>(ranks.rank())] = profile.text;
  });
  EXPECT_EQ(texts[0], read_text(first));
  EXPECT_EQ(texts[1], texts[0]);
}

TEST_F(CostProfileTest, WhereTheFirstRankCannotReadAllRanksSaySo) {
  write_atomically(path("broken"), "name = \"x\"\nflops_per_second = fast\n");
  std::vector<std::string> messages(2);
  comm::run_ranks({"host", "host"}, [&](comm::Communicator& ranks) {
    try {
      agreed_profile(&ranks, library_, path("broken"), 1);
    } catch (const comm::SharedError& error) {
      messages[static_cast<size_t>(ranks.rank())] = error.what();
    }
  });
  for (const std::string& message : messages) EXPECT_THAT(message, HasSubstr("broken:2: "));
}

TEST_F(CostProfileTest, AKeptFileThatIsCutOffNamesItsLineAndTheNextStep) {
  const std::string whole = read_text(write_profile("kept"));
  for (const size_t size : {whole.size() - 1, whole.size() - 4, whole.size() / 2, size_t{3}}) {
    write_atomically(path("kept"), whole.substr(0, size));
    expect_error([&] { read_kept_profile(path("kept")); }, ErrorKind::data, {path("kept") + ":", "start a new run"});
  }
}

}  // namespace
}  // namespace weft::program
