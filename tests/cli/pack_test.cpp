// weft pack, and runs on what it wrote: the same weights, damage that is borne, disks that fill.
#include <cerrno>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace weft::cli_tests {
namespace {

using nlohmann::json;

class Pack : public ProgramTest {
 protected:
  Outcome train_on(const std::string& data, const std::string& run, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"train",   "--model", "mlp",       "--data", data,      "--run",    run,
                                          "--batch", "32",      "--threads", "1",      "--quiet", "--epochs", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return weft(arguments);
  }
  void flip(const std::string& file, size_t at) {
    std::string bytes = read_all(path(file));
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    write_all(path(file), bytes);
  }
  std::vector<std::string> left() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_))
      if (entry.path().filename().string().starts_with("out")) names.push_back(entry.path().filename());
    return names;
  }
};

TEST_F(Pack, ARunOnRecordsIsThatOnTheFiles) {
  const Outcome packed = weft({"pack", data(), "out", "--quiet"});
  ASSERT_EQ(packed.code, 0) << packed.err;
  EXPECT_NE(packed.out.find("packed 392 samples (320 for training, 72 for testing) into 2 shards"), std::string::npos)
      << packed.out;
  EXPECT_EQ(packed.err, "");
  const std::vector<std::string> flip = {"--set", "augment.flip=random", "--workers", "3"};
  ASSERT_EQ(train_on(data(), "files", flip).code, 0);
  const Outcome outcome = train_on("packed:out", "records", flip);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(read_all(path("files/checkpoints/best/model.safetensors")),
            read_all(path("records/checkpoints/best/model.safetensors")));
  const Outcome eval = weft({"eval", "records", "--json"});
  EXPECT_EQ(eval.code, 0) << eval.err;
  EXPECT_EQ(json::parse(eval.out)["accuracy"], json::parse(weft({"eval", "files", "--json"}).out)["accuracy"]);
}

TEST_F(Pack, IsDescribedAndVerified) {
  ASSERT_EQ(weft({"pack", data(), "out", "--json", "--quiet"}).code, 0);
  const json before = json::parse(weft({"data", data(), "--json"}).out);
  json after = json::parse(weft({"data", "packed:out", "--json"}).out);
  for (const char* key : {"name", "train_samples", "test_samples", "mean", "deviation", "class_counts"})
    EXPECT_EQ(before[key], after[key]) << key;
  const Outcome good = weft({"data", "packed:out", "--verify"});
  EXPECT_EQ(good.code, 0);
  EXPECT_EQ(good.err, "weft: verified: all 392 samples can be read\n");
  flip("out/train-00000.shard", 250);  // records of 96 bytes
  flip("out/train-00000.shard", 2000);
  const Outcome bad = weft({"data", "packed:out", "--verify"});
  EXPECT_EQ(bad.code, 1);
  EXPECT_EQ(std::count(bad.err.begin(), bad.err.end(), '\n'), 2) << bad.err;
  EXPECT_NE(bad.err.find("'out/train-00000.shard': record 2 is damaged: its checksum differs"), std::string::npos)
      << bad.err;
}

TEST_F(Pack, DamageIsCountedAndSaidOnce) {
  ASSERT_EQ(weft({"pack", data(), "out", "--quiet"}).code, 0);
  for (const size_t at : {250, 2000, 5050}) flip("out/train-00000.shard", at);
  const Outcome borne = train_on("packed:out", "borne");
  ASSERT_EQ(borne.code, 0) << borne.err;
  EXPECT_EQ(std::count(borne.err.begin(), borne.err.end(), '\n'), 1) << borne.err;
  EXPECT_NE(borne.err.find("is damaged: its checksum differs; the next whole record takes the place of each"),
            std::string::npos)
      << borne.err;
  EXPECT_EQ(json::parse(read_all(path("borne/summary.json")))["damaged_samples"], 3);
  const Outcome refused = train_on("packed:out", "refused", {"--max-bad-records", "2"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("3 of the 320 train records are damaged, max_bad_records=2 may be"), std::string::npos)
      << refused.err;
}

TEST_F(Pack, ADiskThatFillsLeavesNothing) {
  const Outcome outcome = weft({"pack", data(), "out", "--quiet"}, 10'000);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("cannot write"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("nothing was left of 'out'"), std::string::npos) << outcome.err;
  EXPECT_EQ(left(), std::vector<std::string>{});
}

/// Whatever the world does at whatever change of a file: the folder is whole or absent, and packing again works.
TEST_F(Pack, FaultsAtAnyMomentLeaveAllOrNothing) {
  fs::create_directories(path("packs"));
  const std::vector<std::string> command = {"pack", data(), "packs/out", "--quiet", "--shard-size", "10kB"};
  const auto run = [&](const std::string& fault) {
    return Process(command, directory_, -1,
                   {"LD_PRELOAD=" WEFT_FAULT_INJECTION, "WEFT_FAULT_BELOW=" + path("packs").string(),
                    "WEFT_FAULT=" + fault, "ASAN_OPTIONS=verify_asan_link_order=0"})
        .wait();
  };
  ASSERT_EQ(run("count:" + path("changes").string()).code, 0);
  const long changes = std::stol(read_all(path("changes")));
  ASSERT_GT(changes, 20) << "the file operations are not seen";
  const std::string whole = read_all(path("packs/out/train-00001.shard"));
  for (long at = 1; at <= changes; at += 3) {
    SCOPED_TRACE("change " + std::to_string(at) + " of " + std::to_string(changes));
    fs::remove_all(path("packs/out"));
    const Outcome full = run("refuse:" + std::to_string(ENOSPC) + ":" + std::to_string(at));
    EXPECT_TRUE(fs::is_empty(path("packs")) == (full.code == 1)) << full.err;
    if (full.code == 1) {
      EXPECT_NE(full.err.find("No space left on device"), std::string::npos) << full.err;
    }
    fs::remove_all(path("packs/out"));
    run("power:" + std::to_string(at));
    const bool there = fs::exists(path("packs/out"));
    if (!there) {
      ASSERT_EQ(weft(command).code, 0);
    }
    EXPECT_EQ(read_all(path("packs/out/train-00001.shard")), whole);
    EXPECT_EQ(weft({"data", "packed:packs/out", "--verify"}).code, 0);
    for (const auto& entry : fs::directory_iterator(path("packs")))
      EXPECT_TRUE(there || entry.path().filename() == "out") << entry.path();
  }
}

TEST_F(Pack, TellsItsProgress) {
  const Outcome outcome = weft({"pack", data(), "out"});
  EXPECT_NE(outcome.err.find("packed 392/392 records"), std::string::npos) << outcome.err;
}

TEST_F(Pack, MistakesAreNamed) {
  expect_error(weft({"pack", data(), "out", "--shard-size", "7"}), 2, "--shard-size '7': wants a size from 10.0 kB on");
  expect_error(weft({"pack", data(), "out", "--max-bad-records", "x", "--quiet"}), 2, "--max-bad-records: 'x'");
  EXPECT_EQ(left(), std::vector<std::string>{});
  ASSERT_EQ(weft({"pack", data(), "out", "--quiet"}).code, 0);
  expect_error(weft({"pack", data(), "out", "--quiet"}), 2, "'out' holds something already");
  expect_error(weft({"pack", "packed:out", "other"}), 2, "is packed already");
  expect_error(train_on(data(), "r", {"--cache-limit", "1GB"}), 2, "lies in memory and has no option 'cache'");
  expect_error(train_on(data(), "r", {"--workers", "many"}), 2, "--workers 'many'");
}

TEST_F(Pack, WaitingIsMeasured) {
  ASSERT_EQ(train_on(data(), "r").code, 0);
  const json summary = json::parse(read_all(path("r/summary.json")));
  EXPECT_GT(summary["step_seconds"], 0);
  EXPECT_GE(summary["input_wait_seconds"], 0);
  EXPECT_LE(summary["input_wait_seconds"], summary["step_seconds"]);
  std::istringstream lines(read_all(path("r/metrics.jsonl")));
  double waited = 0;
  for (std::string line; std::getline(lines, line);)
    if (const json record = json::parse(line); record["kind"] == "epoch")
      waited += record["input_wait_seconds"].get<double>();
  EXPECT_NEAR(waited, summary["input_wait_seconds"], 0.002);
  EXPECT_NE(weft({"explain", "r"}).out.find("for their batches"), std::string::npos);
}

}  // namespace
}  // namespace weft::cli_tests
