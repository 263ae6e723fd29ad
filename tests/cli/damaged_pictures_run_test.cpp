// Pictures of a folder that cannot be read, in training: passed over up to max_bad_records, counted, listed.
#include <nlohmann/json.hpp>

#include "tests/cli/pictures.h"
#include "tests/cli/program.h"

namespace weft::cli_tests {
namespace {

using nlohmann::json;

class DamagedPictures : public ProgramTest {
 protected:
  /// Two classes of 20 pictures, of which 2 for training and 1 for testing are damaged.
  void SetUp() override {
    ProgramTest::SetUp();
    for (const char* part : {"train", "test"})
      for (const char* kind : {"dark", "light"}) {
        fs::create_directories(path("pictures") / part / kind);
        for (int at = 0; at < 20; ++at) {
          std::string pixels = noise(static_cast<uint32_t>(at + 1), 64);
          if (kind == std::string("light"))
            for (char& pixel : pixels) pixel = static_cast<char>(static_cast<unsigned char>(pixel) / 2 + 120);
          write_all(path("pictures") / part / kind / (std::to_string(at) + ".pgm"), pgm(8, 8, pixels));
        }
      }
    for (const char* damaged : {"train/dark/3.pgm", "train/light/7.pgm", "test/dark/0.pgm"})
      write_all(path("pictures") / damaged, "P5 8 8 255\ncut off");
  }
  Outcome train(const std::string& run, std::vector<std::string> more) {
    more.insert(more.begin(),
                {"train", "--model", "mlp", "--data", "images:pictures?size=8&resize=8&channels=1", "--run", run,
                 "--batch", "8", "--threads", "1", "--quiet", "--set", "schedule.name=constant"});
    return weft(more);
  }
  std::string weights(const std::string& run) { return read_all(path(run + "/checkpoints/best/model.safetensors")); }
};

TEST_F(DamagedPictures, AreAnErrorUnlessTheyAreAllowed) {
  const Outcome outcome = train("r", {"--epochs", "2"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("is truncated"), std::string::npos) << outcome.err;
}

TEST_F(DamagedPictures, AreCountedSaidOnceAndListed) {
  const Outcome outcome = train("r", {"--epochs", "3", "--max-bad-records", "2"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("is truncated"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("; the next picture of the same class takes the place of each damaged one ("),
            std::string::npos)
      << outcome.err;
  const std::string spec = "'images:" + path("pictures?size=8&resize=8&channels=1&max_bad_records=2").string() + "'";
  EXPECT_NE(outcome.err.find("`weft data " + spec + " --verify` names them"), std::string::npos) << outcome.err;
  EXPECT_EQ(json::parse(read_all(path("r/summary.json")))["damaged_samples"], 3);
  const std::string listed = read_all(path("r/damaged_samples.txt"));
  EXPECT_EQ(std::count(listed.begin(), listed.end(), '\n'), 3) << listed;
  for (const char* name : {"train/dark/3.pgm", "train/light/7.pgm", "test/dark/0.pgm"})
    EXPECT_NE(listed.find(name), std::string::npos) << listed;
}

TEST_F(DamagedPictures, MoreThanAllowedEndTheRunWithAClearError) {
  const Outcome outcome = train("r", {"--epochs", "3", "--max-bad-records", "1"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("[images] 2 of the 40 training pictures are damaged, max_bad_records=1 may be: "),
            std::string::npos)
      << outcome.err;
}

TEST_F(DamagedPictures, TestDataOfNothingElseEndTheRunBeforeItBegins) {
  for (const char* kind : {"dark", "light"})
    for (int at = 0; at < 20; ++at)
      write_all(path("pictures/test") / kind / (std::to_string(at) + ".pgm"), "P5 8 8 255\ncut off");
  expect_error(train("r", {"--epochs", "1", "--max-bad-records", "100%"}), 1,
               "[images] all 40 test pictures of 'pictures/test' are damaged, and none is left to measure (");
  EXPECT_FALSE(fs::exists(path("r")));
}

TEST_F(DamagedPictures, AResumedRunHasTheSameBits) {
  const std::vector<std::string> limit = {"--max-bad-records", "5%"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), limit.begin(), limit.end());
    return more;
  };
  ASSERT_EQ(train("whole", with({"--epochs", "4"})).code, 0);
  ASSERT_EQ(train("half", with({"--epochs", "2"})).code, 0);
  const Outcome resumed = weft({"train", "--resume", "half", "--epochs", "4", "--quiet"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(weights("half"), weights("whole"));
  EXPECT_EQ(json::parse(read_all(path("half/summary.json")))["damaged_samples"], 3) << "those before it, too";
  const std::string listed = read_all(path("half/damaged_samples.txt"));
  EXPECT_EQ(std::count(listed.begin(), listed.end(), '\n'), 3) << listed;
}

TEST_F(DamagedPictures, DoNotDependOnTheWorkers) {
  ASSERT_EQ(train("one", {"--epochs", "3", "--max-bad-records", "2", "--workers", "1"}).code, 0);
  ASSERT_EQ(train("three", {"--epochs", "3", "--max-bad-records", "2", "--workers", "3"}).code, 0);
  EXPECT_EQ(weights("one"), weights("three"));
}

}  // namespace
}  // namespace weft::cli_tests
