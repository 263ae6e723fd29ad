// Gradients made smaller before ranks, which here are threads, exchange them: which are, that training still learns,
// and that what each rank leaves out survives a checkpoint.
#include "weft/train/compression.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/files_for_tests.h"
#include "tests/train/drawn_data.h"
#include "weft/base/files.h"
#include "weft/comm/local/local_group.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"
#include "weft/passes/late_multiply.h"
#include "weft/train/checkpoint/store.h"
#include "weft/train/run.h"

namespace weft::train {
namespace {

const CompressionCosts kSlow{.ranks = {.count = 4, .latency_seconds = 1e-4, .bytes_per_second = 5e7}};
const CompressionCosts kFast{.ranks = {.count = 2, .latency_seconds = 1e-6, .bytes_per_second = 5e11}};

class ChooseCompression : public testing::Test {
 protected:
  ValueId gradient(const Shape& shape) {
    return graph_.add_input(InputKind::batch, "x" + std::to_string(graph_.inputs().size()), {DType::f32, shape, {}});
  }
  std::string choose(ValueId value, const std::string& method, const CompressionCosts& costs,
                     const std::string& tensors = "paid") const {
    return choose_compression(graph_, value, {.method = method, .tensors = tensors}, costs);
  }

  const OpRegistry registry_ = ops::make_registry();
  Graph graph_{registry_, "g"};
};

TEST_F(ChooseCompression, IsOffUnlessAskedFor) { EXPECT_EQ(choose(gradient({1024, 1024}), "none", kSlow), "none"); }

TEST_F(ChooseCompression, TakesTheMethodWhereItPays) {
  const ValueId large = gradient({1024, 1024});
  for (const char* method : {"bf16", "powersgd", "top_k", "one_bit"}) {
    EXPECT_EQ(choose(large, method, kSlow), method);
    EXPECT_EQ(choose(large, method, kFast), "none");
    EXPECT_EQ(choose(large, method, kFast, "all"), method);
  }
}

TEST_F(ChooseCompression, LeavesFewElementsAndVectorsThatAreNoMatrices) {
  EXPECT_EQ(choose(gradient({512}), "one_bit", kSlow, "all"), "none");
  EXPECT_EQ(choose(gradient({1 << 20}), "powersgd", kSlow, "all"), "none");
}

TEST_F(ChooseCompression, TakesTheCheapestOfAll) {
  EXPECT_EQ(choose(gradient({4096, 4096}), "auto", kSlow), "powersgd");
  EXPECT_NE(choose(gradient({1 << 24}), "auto", kSlow), "bf16");
}

TEST_F(ChooseCompression, LosesNothingWhereALateMultiplyIsAsCheap) {
  const ValueId rows = gradient({8, 1024}), shares = gradient({8, 2048});
  const ValueId weights = ops::matmul(graph_, shares, rows, true, false);
  EXPECT_EQ(choose(weights, "bf16", kSlow), "none");
  EXPECT_EQ(choose(gradient({2048, 1024}), "bf16", kSlow), "bf16");
}

class Compressed : public FilesTest, public testing::WithParamInterface<const char*> {
 protected:
  static Library library_of_images() {
    Library library = standard_library();
    library.add_data({.name = "drawn",
                      .form = "drawn:",
                      .summary = "",
                      .open = [](const data::DataSpec&, data::Split split, const std::string&) {
                        const data::DatasetInfo info{.name = "drawn", .sample_shape = {1, 16, 16}, .classes = 3};
                        return std::make_unique<DrawnData>(info, split == data::Split::train ? 320 : 70, -1);
                      }});
    return library;
  }
  static RunSpec spec_of(const std::string& method, double epochs) {
    RunSpec spec;
    spec.model.name = "lenet5";
    spec.data = "drawn:";
    spec.epochs = epochs;
    spec.batch = 64;  // 5 steps an epoch
    spec.threads = 1;
    spec.loader.workers = 1;
    spec.optimizer.learning_rate = 0.02;
    spec.compression = {.method = method, .tensors = "all", .rank = 2, .share = 0.05};
    resolve(spec);
    return spec;
  }
  using Body = std::function<RunOutcome(const RunOptions& options)>;
  static RunOutcome on_hosts(const std::vector<std::string>& hosts, const Body& body) {
    RunOutcome first;
    comm::run_ranks(hosts, [&](comm::Communicator& ranks) {
      const RunOutcome outcome = body({.ranks = &ranks});
      if (ranks.rank() == 0) first = outcome;
    });
    return first;
  }
  std::vector<double> losses(const std::string& run) const {
    std::ifstream lines(path(run + "/metrics.jsonl"));
    std::vector<double> found;
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json record = nlohmann::json::parse(line);
      if (record.at("kind") == "step") found.push_back(record.at("loss"));
    }
    return found;
  }
};
INSTANTIATE_TEST_SUITE_P(Methods, Compressed, testing::Values("bf16", "powersgd", "top_k", "one_bit"),
                         [](const auto& method) { return std::string(method.param); });

double last_of(const std::vector<double>& losses) {
  double sum = 0;
  for (size_t step = losses.size() - 5; step < losses.size(); ++step) sum += losses[step] / 5;
  return sum;
}

TEST_P(Compressed, LearnsAsItDoesWithout) {
  const Library library = library_of_images();
  for (const std::string method : {"none", GetParam()})
    on_hosts({"a", "a", "b"}, [&](const RunOptions& options) {
      RunSpec spec = spec_of(method, 16);
      spec.batch = 63;
      return start_run(library, spec, path(method), options);
    });
  const std::vector<double> plain = losses("none"), compressed = losses(GetParam());
  ASSERT_EQ(plain.size(), compressed.size());
  const double learned = plain.front() - last_of(plain);
  EXPECT_GT(learned, 0.2 * plain.front());
  EXPECT_GT(plain.front() - last_of(compressed), 0.8 * learned) << plain.front() << " to " << last_of(compressed);
  EXPECT_NE(plain, compressed);
}

TEST_P(Compressed, GoesOnFromACheckpointToTheLastBit) {
  const Library library = library_of_images();
  RunSpec spec = spec_of(GetParam(), 3);
  spec.checkpoint.every_steps = 1;
  const std::vector<std::string> hosts{"a", "b"};
  on_hosts(hosts, [&](const RunOptions& options) { return start_run(library, spec, path("whole"), options); });
  on_hosts(hosts, [&](const RunOptions& given) {
    RunOptions options = given;
    int asked = 0;
    if (given.ranks->rank() == 1) options.stop_requested = [asked]() mutable { return ++asked > 6; };
    return start_run(library, spec, path("cut"), options);
  });
  ASSERT_LT(losses("cut").size(), 12u);
  on_hosts(hosts, [&](const RunOptions& options) { return resume_run(library, path("cut"), 1, options); });
  EXPECT_EQ(losses("cut"), losses("whole"));
}

TEST_P(Compressed, GoesOnAloneAndOnOtherNumbersOfRanks) {
  const Library library = library_of_images();
  const auto cut = [&](const RunOptions& given) {
    RunOptions options = given;
    int asked = 0;
    options.stop_requested = [asked]() mutable { return ++asked > 6; };
    return start_run(library, spec_of(GetParam(), 3), path("run"), options);
  };
  on_hosts({"a", "b"}, cut);
  on_hosts({"a", "a", "b", "b"}, [&](const RunOptions& given) {
    RunOptions options = given;
    int asked = 0;
    options.stop_requested = [asked]() mutable { return ++asked > 3; };
    return resume_run(library, path("run"), 1, options);
  });
  const RunOutcome outcome = resume_run(library, path("run"), 1, {});
  EXPECT_TRUE(outcome.finished);
  const std::vector<std::string> names =
      CheckpointStore(path("run/checkpoints"), 2).read_newest([](const auto&) {})->state.names();
  EXPECT_TRUE(std::none_of(names.begin(), names.end(), is_compression_error));
}

TEST(Compression, RefusesScaledLosses) {
  RunSpec spec;
  spec.model.name = "mlp";
  spec.compression.method = "one_bit";
  spec.loss_scaling.mode = "dynamic";
  expect_error([&] { resolve(spec); }, ErrorKind::usage, {"compression.method = 'one_bit'", "loss_scaling.mode=none"});
}

}  // namespace
}  // namespace weft::train
