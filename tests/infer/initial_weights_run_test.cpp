// weft train --init: what it says and keeps of the tensors of a file; --freeze and --group.
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "weft/tensor/safetensors.h"

namespace weft::cli_tests {
namespace {

using nlohmann::json;

class InitialWeightsRun : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    ASSERT_EQ(weft(tiny_run("a")).code, 0);
    ASSERT_EQ(weft({"export", "a", "a.safetensors"}).code, 0);
  }
  void change(const std::function<void(SafetensorsFile&)>& change) {
    SafetensorsFile file = read_safetensors(path("a.safetensors"));
    change(file);
    write_safetensors(path("a.safetensors"), file);
  }
  Outcome train(const std::string& run, std::vector<std::string> more) {
    more.insert(more.begin(), {"--init", "a.safetensors"});
    return weft(tiny_run(run, more));
  }
  std::map<std::string, Tensor> weights(const std::string& run) {
    EXPECT_EQ(weft({"export", run, run + ".safetensors"}).code, 0);
    return read_safetensors(path(run + ".safetensors")).tensors;
  }
  static bool same(const Tensor& a, const Tensor& b) {
    return a.shape() == b.shape() &&
           std::equal(a.data_as<float>(), a.data_as<float>() + a.elements(), b.data_as<float>());
  }
  static std::vector<std::string> names(const json& tensors) {
    std::vector<std::string> found;
    for (const json& tensor : tensors) found.push_back(tensor.at("name"));
    return found;
  }
};

TEST_F(InitialWeightsRun, SayAndKeepWhatWasTaken) {
  const Outcome outcome = train("b", {});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("a.safetensors': 6 tensors taken; 0 left in the file; 0 missing\n"), std::string::npos)
      << outcome.err;
  const json kept = json::parse(read_all(path("b/initial_weights.json")));
  EXPECT_EQ(kept.at("taken").size(), 6u);
  EXPECT_EQ(kept.at("taken")[0].at("name"), "fc1.weight");
  EXPECT_EQ(kept.at("taken")[0].at("shape"), json({512, 64}));
  EXPECT_TRUE(kept.at("left").empty());
  EXPECT_TRUE(kept.at("missing").empty());
}

TEST_F(InitialWeightsRun, NameAllOnRequest) {
  const Outcome outcome = train("b", {"--list-init"});
  EXPECT_NE(outcome.err.find("6 tensors taken: fc1.weight (512,64), fc1.bias (512), "), std::string::npos)
      << outcome.err;
}

TEST_F(InitialWeightsRun, OfOtherClassesNameTheLastLayerWithItsShapes) {
  write_idx("three", 96, 8, 3);
  const Outcome outcome =
      weft({"train", "--model", "mlp", "--data", "idx:three-images,three-labels", "--init", "a.safetensors", "--run",
            "b", "--epochs", "1", "--batch", "32", "--threads", "1", "--quiet"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("4 tensors taken; 2 left in the file: fc3.weight (4,256), fc3.bias (4); 2 missing: "
                             "fc3.weight (3,256), fc3.bias (3)"),
            std::string::npos)
      << outcome.err;
  const json kept = json::parse(read_all(path("b/initial_weights.json")));
  EXPECT_EQ(names(kept.at("missing")), (std::vector<std::string>{"fc3.weight", "fc3.bias"}));
}

TEST_F(InitialWeightsRun, WithoutALastLayerLeaveItFresh) {
  change([](SafetensorsFile& file) {
    file.tensors.erase("fc3.weight");
    file.tensors.erase("fc3.bias");
  });
  const Outcome outcome = train("b", {});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("2 missing: fc3.weight (4,256), fc3.bias (4)"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("the missing tensors start from random values by the seed"), std::string::npos)
      << outcome.err;
}

TEST_F(InitialWeightsRun, LeaveTheLastLayerFreshOnRequest) {
  const Outcome outcome = train("b", {"--init-head", "fresh", "--set", "optimizer.learning_rate=1e-30"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("4 tensors taken; 2 left in the file: fc3.weight (4,256), fc3.bias (4); 2 missing: "
                             "fc3.weight (4,256), fc3.bias (4)"),
            std::string::npos)
      << outcome.err;
  ASSERT_EQ(weft(tiny_run("seed", {"--set", "optimizer.learning_rate=1e-30"})).code, 0);
  const auto before = read_safetensors(path("a.safetensors")).tensors;
  const auto b = weights("b"), seed = weights("seed");
  EXPECT_TRUE(same(b.at("fc2.weight"), before.at("fc2.weight")));
  EXPECT_FALSE(same(b.at("fc3.weight"), before.at("fc3.weight")));
  EXPECT_TRUE(same(b.at("fc3.weight"), seed.at("fc3.weight")));
}

TEST_F(InitialWeightsRun, MayFitInPartOnRequest) {
  change([](SafetensorsFile& file) {
    file.tensors.erase("fc1.weight");
    file.tensors["extra"] = Tensor(DType::f32, {3});
  });
  const Outcome refused = train("b", {});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("has no tensor 'fc1.weight'"), std::string::npos) << refused.err;
  EXPECT_FALSE(fs::exists(path("b")));
  const Outcome outcome = train("b", {"--init-partial"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("5 tensors taken; 1 left in the file: extra (3); 1 missing: fc1.weight (512,64)"),
            std::string::npos)
      << outcome.err;
}

TEST_F(InitialWeightsRun, AreMatchedInADryRunToo) {
  const Outcome fits = train("b", {"--dry-run"});
  EXPECT_EQ(fits.code, 0) << fits.err;
  EXPECT_NE(fits.err.find("a.safetensors': 6 tensors taken; 0 left in the file; 0 missing\n"), std::string::npos)
      << fits.err;
  change([](SafetensorsFile& file) { file.tensors.erase("fc1.weight"); });
  const Outcome refused = train("b", {"--dry-run"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("has no tensor 'fc1.weight'"), std::string::npos) << refused.err;
  EXPECT_FALSE(fs::exists(path("b")));
}

TEST_F(InitialWeightsRun, AreSaidOnceNotAgainByAResumedRun) {
  ASSERT_EQ(train("b", {}).code, 0);
  const Outcome resumed = weft({"train", "--resume", "b", "--epochs", "3", "--quiet"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(resumed.err.find("tensors taken"), std::string::npos) << resumed.err;
}

TEST_F(InitialWeightsRun, FrozenOnesStayBitwise) {
  ASSERT_EQ(train("b", {"--freeze", "fc1.*", "--freeze", "fc2.weight"}).code, 0);
  const auto before = read_safetensors(path("a.safetensors")).tensors;
  const auto after = weights("b");
  for (const char* name : {"fc1.weight", "fc1.bias", "fc2.weight"}) EXPECT_TRUE(same(before.at(name), after.at(name)));
  for (const char* name : {"fc2.bias", "fc3.weight", "fc3.bias"}) EXPECT_FALSE(same(before.at(name), after.at(name)));
  EXPECT_NE(read_all(path("b/spec.toml")).find("freeze = \"fc1.*, fc2.weight\""), std::string::npos);
}

TEST_F(InitialWeightsRun, AGroupOfTheCommandLineIsOneOfTheRecipe) {
  const std::vector<std::string> keys = {"--set", "optimizer.groups.group1.match=fc2.*",
                                         "--set", "optimizer.groups.group1.learning_rate_factor=0.1",
                                         "--set", "optimizer.groups.group1.weight_decay=0"};
  ASSERT_EQ(train("b", {"--group", "fc2.*:learning_rate_factor=0.1,weight_decay=0"}).code, 0);
  ASSERT_EQ(train("c", keys).code, 0);
  EXPECT_EQ(read_all(path("b/spec.toml")), read_all(path("c/spec.toml")));
  ASSERT_EQ(train("d", {}).code, 0);
  const auto b = weights("b"), c = weights("c"), d = weights("d");
  EXPECT_TRUE(same(b.at("fc2.weight"), c.at("fc2.weight")));
  EXPECT_FALSE(same(b.at("fc2.weight"), d.at("fc2.weight")));
}

TEST_F(InitialWeightsRun, MistakesInGroupsAreNamed) {
  const auto error = [&](const std::string& group) { return train("b", {"--group", group}).err; };
  EXPECT_NE(error("fc2.*").find("--group 'fc2.*': wants PATTERN:KEY=VALUE"), std::string::npos);
  EXPECT_NE(error("fc2.*:rate=1").find("rate"), std::string::npos);
  EXPECT_NE(error("fc1.*:learning_rate_factor=0.1,match=fc2.*").find("'match=fc2.*' contradicts the pattern"),
            std::string::npos);
  EXPECT_NE(error("fc9.*:learning_rate_factor=1").find("match = 'fc9.*' matches no parameter"), std::string::npos);
  EXPECT_FALSE(fs::exists(path("b")));
}

}  // namespace
}  // namespace weft::cli_tests
