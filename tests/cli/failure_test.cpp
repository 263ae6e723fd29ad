// What the world can do wrong: files, disks, data, runs. One clear message each and nothing half-written.
#include "tests/cli/program.h"

namespace weft::cli_tests {
namespace {

class Failure : public ProgramTest {
 protected:
  void train_tiny(const std::string& run, std::vector<std::string> more = {}) {
    const Outcome outcome = weft(tiny_run(run, std::move(more)));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  std::vector<fs::path> checkpoints(const std::string& run) const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(path(run) / "checkpoints"))
      if (entry.path().filename().string().starts_with("step-")) found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    return found;
  }
};

TEST_F(Failure, MissingDataFile) {
  expect_error(weft({"train", "--model", "mlp", "--data", "idx:absent,train-labels", "--run", "r"}), 1, "'absent'");
  EXPECT_FALSE(fs::exists(path("r")));
}

TEST_F(Failure, NameOfDataThatIsTooLongForAPath) {
  const std::string name(300, 'a');
  expect_error(weft({"train", "--model", "mlp", "--data", "idx:" + name + ",b"}), 1,
               "[idx] cannot open '" + name + "': File name too long; check the path");
  expect_error(weft({"train", "--model", "mlp", "--data", "cifar10:" + name}), 1, "File name too long; check the path");
  expect_error(weft({"train", "--model", "mlp", "--data", "fashion-mnist:" + name}), 1,
               "[fashion-mnist] no file '" + name);
}

TEST_F(Failure, TruncatedImages) {
  fs::resize_file(path("train-images"), 1000);
  const Outcome outcome = weft(tiny_run("r"));
  expect_error(outcome, 1, "train-images");
  EXPECT_FALSE(fs::exists(path("r")));
}

TEST_F(Failure, ImagesAndLabelsOfDifferentCount) {
  write_idx("other", 10, 8);
  EXPECT_EQ(weft({"train", "--model", "mlp", "--data", "idx:train-images,other-labels", "--run", "r"}).code, 1);
  EXPECT_FALSE(fs::exists(path("r")));
}

TEST_F(Failure, BatchLargerThanTheDataSet) {
  expect_error(weft(tiny_run("r", {"--set", "batch=4096"})), 2,
               "batch = 4096 is larger than the training data 'idx' of 320 samples; choose a smaller batch");
  EXPECT_FALSE(fs::exists(path("r")));
}

TEST_F(Failure, ModelAndDataThatDoNotFit) {
  const Outcome outcome =
      weft({"train", "--model", "transformer_lm", "--data", data(), "--run", "r", "--batch", "32", "--quiet"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_EQ(outcome.err.substr(0, 6), "weft: ");
  EXPECT_FALSE(fs::exists(path("r")));
}

TEST_F(Failure, RunDirectoryThatExists) {
  train_tiny("r");
  const std::string spec = read_all(path("r/spec.toml"));
  expect_error(weft(tiny_run("r")), 2, "'r' holds a run already; go on with it by --resume r");
  EXPECT_EQ(read_all(path("r/spec.toml")), spec);
}

TEST_F(Failure, RunDirectoryThatHoldsSomethingElse) {
  fs::create_directory(path("r"));
  write_all(path("r/letter.txt"), "dear");
  expect_error(weft(tiny_run("r")), 2, "'r' is not empty; choose another --run directory");
}

TEST_F(Failure, RunDirectoryThatIsAFile) {
  write_all(path("r"), "x");
  expect_error(weft(tiny_run("r")), 2, "'r' is a file");
}

TEST_F(Failure, RunDirectoryThatCannotBeMade) {
  expect_error(weft(tiny_run("/proc/weft-run")), 1, "cannot create directory '/proc/weft-run'");
}

TEST_F(Failure, FullDiskAtTheStartLeavesNothing) {
  // No file may hold a byte: the first write of the run directory fails.
  const Outcome outcome = weft(tiny_run("r"), 0);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_FALSE(fs::exists(path("r")));
}

TEST_F(Failure, FullDiskAtACheckpointKeepsTheOlderOnes) {
  // Large enough for the description of the run, too small for the weights.
  const Outcome outcome = weft(tiny_run("r", {"--set", "model.hidden=2048"}), 400 * 1024);
  expect_error(outcome, 1, "model.safetensors");
  for (const auto& entry : fs::recursive_directory_iterator(path("r/checkpoints")))
    ADD_FAILURE() << "left behind: " << entry.path();
  EXPECT_FALSE(fs::exists(path("r/summary.json")));
}

TEST_F(Failure, LossThatBecomesNaN) {
  const Outcome outcome = weft(tiny_run("r", {"--set", "optimizer.learning_rate=1e6", "--set", "schedule.name=constant",
                                              "--epochs", "20", "--set", "checkpoint.every_steps=1"}));
  expect_error(outcome, 1, "lower");
  EXPECT_NE(outcome.err.find("optimizer.learning_rate"), std::string::npos);
  EXPECT_FALSE(fs::exists(path("r/summary.json")));
}

TEST_F(Failure, ResumeOfNothing) {
  expect_error(weft({"train", "--resume", "absent"}), 2, "there is no run directory 'absent'");
  fs::create_directory(path("empty"));
  expect_error(weft({"train", "--resume", "empty"}), 2, "'empty' is no run directory: it has no spec.toml");
}

TEST_F(Failure, ResumeWithoutACheckpointStartsFromTheFirstStep) {
  train_tiny("r");
  const std::string last = checkpoints("r").back().filename().string();
  const std::string weights = read_all(path("r/checkpoints") / last / "model.safetensors");
  fs::remove_all(path("r/checkpoints"));
  const Outcome outcome = weft({"train", "--resume", "r", "--quiet"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("no checkpoint yet: starting from the first step"), std::string::npos);
  EXPECT_EQ(read_all(path("r/checkpoints") / last / "model.safetensors"), weights);
}

TEST_F(Failure, TruncatedNewestCheckpointFallsBack) {
  train_tiny("r");
  const fs::path newest = checkpoints("r").back();
  const std::string weights = read_all(newest / "model.safetensors");
  fs::resize_file(newest / "model.safetensors", 100);
  const Outcome outcome = weft({"train", "--resume", "r", "--quiet"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("is left out"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find(newest.filename().string()), std::string::npos) << outcome.err;
  EXPECT_EQ(read_all(newest / "model.safetensors"), weights) << "trained again to the same bits";
}

TEST_F(Failure, AllCheckpointsDamaged) {
  train_tiny("r");
  for (const fs::path& checkpoint : checkpoints("r")) write_all(checkpoint / "manifest.json", "{");
  const Outcome outcome = weft({"train", "--resume", "r", "--quiet"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("no checkpoint in 'r/checkpoints' is whole"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("is no whole manifest"), std::string::npos) << outcome.err;
}

TEST_F(Failure, ResumeWithAnotherSpec) {
  train_tiny("r");
  std::string spec = read_all(path("r/spec.toml"));
  spec.replace(spec.find("seed = 1"), 8, "seed = 2");
  write_all(path("r/spec.toml"), spec);
  expect_error(weft({"train", "--resume", "r", "--quiet"}), 1, "belongs to another spec.toml");
}

TEST_F(Failure, ResumeWithOtherData) {
  train_tiny("r");
  fs::remove(path("r/summary.json"));
  write_idx("train", 319, 8);
  expect_error(weft({"train", "--resume", "r", "--quiet"}), 1, "there were 320 samples, now 319");
}

TEST_F(Failure, EvalWithoutARun) { expect_error(weft({"eval", "absent"}), 2, "there is no run directory 'absent'"); }

TEST_F(Failure, EvalWithoutACheckpoint) {
  train_tiny("r");
  fs::remove_all(path("r/checkpoints"));
  expect_error(weft({"eval", "r"}), 2, "'r' has no checkpoint yet");
}

TEST_F(Failure, EvalOnDataOfAnotherShape) {
  train_tiny("r");
  write_idx("large", 16, 12);
  expect_error(weft({"eval", "r", "--data", "idx:large-images,large-labels"}), 1, "choose other data");
}

TEST_F(Failure, EvalOnDataWithMoreClasses) {
  train_tiny("r");
  write_idx("many", 60, 8, 6);
  expect_error(weft({"eval", "r", "--data", "idx:many-images,many-labels"}), 1, "choose other data");
}

TEST_F(Failure, PredictOnATextFile) {
  train_tiny("r");
  write_all(path("letter.txt"), "this is no image");
  expect_error(weft({"predict", "r", "letter.txt"}), 1, "letter.txt");
}

TEST_F(Failure, PredictOnAMissingFile) {
  train_tiny("r");
  expect_error(weft({"predict", "r", "absent.png"}), 1, "absent.png");
}

TEST_F(Failure, PredictGoesOnAfterABadFile) {
  train_tiny("r");
  write_all(path("good.pgm"), "P5\n8 8\n255\n" + std::string(64, '\x40'));
  const Outcome outcome = weft({"predict", "r", "absent.png", "good.pgm"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("good.pgm"), std::string::npos);
}

TEST_F(Failure, GraphFileWithAMistakeIsNamedWithItsLine) {
  write_all(path("g.weft"), "graph \"g\" {\n  nonsense\n}\n");
  expect_error(weft({"graph", "g.weft"}), 1, "'g.weft': graph text, line 2: ");
  expect_error(weft({"graph", "g.weft", "--batch", "4"}), 2, "'g.weft' is a graph already");
}

TEST_F(Failure, BenchThatNeedsMoreMemoryThanThereIs) {
  const Outcome outcome = weft({"bench", "resnet18", "--batch", "65536", "--input", "3,2000,2000"});
  expect_error(outcome, 2, "'resnet18' with batch 65536 needs ");
  EXPECT_NE(outcome.err.find("choose a smaller --batch or --input"), std::string::npos) << outcome.err;
}

TEST_F(Failure, DamagedDataDescription) {
  train_tiny("r");
  write_all(path("r/data.json"), "[]");
  expect_error(weft({"predict", "r", "x.png"}), 1, "'r/data.json' is damaged");
}

TEST_F(Failure, TwoRunsInOneDirectory) {
  Process first(tiny_run("r", {"--epochs", "100000", "--set", "evaluation.every_epochs=0"}), directory_);
  while (!first.has_ended() && !fs::exists(path("r/checkpoints")))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const fs::path other = path("elsewhere");
  fs::create_directory(other);
  const Outcome second = Process({"train", "--resume", "../r"}, other).wait();
  expect_error(second, 2, "another weft trains in '../r'");
}

TEST_F(Failure, FullStandardOutput) {
  const std::string command = std::string(WEFT_PROGRAM) + " ops --json > /dev/full 2> " + path("err").string();
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(read_all(path("err")), "weft: cannot write to standard output: No space left on device\n");
}

}  // namespace
}  // namespace weft::cli_tests
