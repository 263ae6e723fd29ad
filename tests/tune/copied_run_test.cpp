// The run of a member of a population that begins as a copy of another one's.
#include "weft/tune/study/copied_run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"
#include "weft/base/files.h"
#include "weft/run/checkpoint/manifest.h"

namespace weft::tune {
namespace {

namespace fs = std::filesystem;

class CopiedRun : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const int step : {2, 4}) {
      const fs::path checkpoint = from() / "checkpoints" / ("step-0000000" + std::to_string(step));
      fs::create_directories(checkpoint);
      run::Manifest manifest;
      manifest.position.step = step;
      manifest.best = run::BestCheckpoint{.step = 2, .score = 0.9};
      write_atomically(checkpoint / "manifest.json", run::print_manifest(manifest));
    }
    fs::create_directory_symlink("step-00000002", from() / "checkpoints" / "best");
    std::ofstream(from() / "metrics.jsonl") << "{}\n";
  }
  fs::path from() const { return directory_ / "0001"; }
  fs::path to() const { return directory_ / "0005"; }
  static run::Manifest manifest_of(const fs::path& checkpoint) {
    return run::parse_manifest(read_text(checkpoint / "manifest.json"), "manifest");
  }
  const TemporaryFolder folder_;
  const fs::path directory_ = folder_.path();
};

TEST_F(CopiedRun, HasAllButTheBestOfItsOrigin) {
  copy_run(from(), to());
  EXPECT_EQ(read_text(to() / "metrics.jsonl"), "{}\n");
  for (const char* name : {"step-00000002", "step-00000004"}) {
    EXPECT_FALSE(manifest_of(to() / "checkpoints" / name).best) << name;
    EXPECT_TRUE(manifest_of(from() / "checkpoints" / name).best) << name;
  }
  EXPECT_FALSE(fs::exists(fs::symlink_status(to() / "checkpoints" / "best")));
  EXPECT_TRUE(fs::is_symlink(from() / "checkpoints" / "best"));
}

TEST_F(CopiedRun, TakesThePlaceOfOneThatAKillLeftHalfMade) {
  const fs::path half = to().string() + ".partial";
  fs::create_directories(half / "checkpoints" / "step-00000002");
  std::ofstream(half / "plan.json") << "half";
  copy_run(from(), to());
  EXPECT_FALSE(fs::exists(half));
  EXPECT_FALSE(fs::exists(to() / "plan.json"));
  EXPECT_TRUE(fs::exists(to() / "metrics.jsonl"));
}

TEST_F(CopiedRun, NothingIsThereWhereItCannotBeWhole) {
  EXPECT_NE(test::error_of([&] { copy_run(directory_ / "none", to()); }, ErrorKind::io).find("cannot copy"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(to()));
  EXPECT_FALSE(fs::exists(to().string() + ".partial"));
}

}  // namespace
}  // namespace weft::tune
