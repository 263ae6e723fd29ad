// Whole runs on several ranks, which here are threads, over data that are drawn, and how what they leave is compared.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/drawn_data.h"
#include "tests/support/files_for_tests.h"
#include "weft/comm/local/local_group.h"
#include "weft/run/checkpoint/store.h"
#include "weft/run/run.h"

namespace weft {

using Hosts = std::vector<std::string>;  // the name of each rank's

inline data::DatasetInfo drawn_images(int64_t channels = 1) {
  return {.name = "drawn", .sample_shape = {channels, 16, 16}, .classes = 3};
}
/// 16 tokens of 24.
inline data::DatasetInfo drawn_sentences() {
  return {.name = "drawn",
          .sample_shape = {16},
          .classes = 24,
          .task = "language_model",
          .sample_dtype = DType::i32,
          .target_shape = {16}};
}
/// Six tokens that become five.
inline data::DatasetInfo drawn_translations() {
  return {.name = "drawn",
          .sample_shape = {11},
          .classes = 7,
          .task = "translation",
          .sample_dtype = DType::i32,
          .target_shape = {5},
          .source_length = 6};
}

/// weft's library with data `drawn:` of that description, read by a Data, which is constructed as DrawnData.
template <typename Data = DrawnData>
Library drawn_library(const data::DatasetInfo& info, int64_t training, int64_t test, int64_t spoiled = -1) {
  Library library = standard_library();
  library.add_data({.name = "drawn",
                    .form = "drawn:",
                    .summary = "",
                    .open = [=](const data::DataSpec&, data::Split split, const std::string&) {
                      const bool trains = split == data::Split::train;
                      return std::make_unique<Data>(info, trains ? training : test, trains ? spoiled : -1);
                    }});
  return library;
}

/// Of drawn data; each rank computes on one thread. Not resolved.
inline spec::RunSpec drawn_spec(const std::string& model, double epochs, int64_t batch, double learning_rate) {
  spec::RunSpec spec;
  spec.model.name = model;
  spec.data = "drawn:";
  spec.epochs = epochs;
  spec.batch = batch;
  spec.threads = 1;
  spec.loader.workers = 1;
  spec.optimizer.learning_rate = learning_rate;
  return spec;
}

/// Of one process that accumulates the four micro-batches of a pipeline's step. Resolved.
inline spec::RunSpec accumulated(spec::RunSpec spec) {
  spec.batch /= 4;
  spec.accumulate = 4;
  spec.evaluation.batch = 64;
  spec::resolve(spec);
  return spec;
}

/// The options with a request to stop that comes after the step of this number, or one later.
inline run::RunOptions stopped_after(run::RunOptions options, int steps) {
  options.stop_requested = [asked = 0, steps]() mutable { return ++asked > steps; };
  return options;
}

class RanksTest : public FilesTest {
 protected:
  using Body = std::function<run::RunOutcome(const run::RunOptions& options)>;

  static Hosts one_host(int ranks) { return Hosts(static_cast<size_t>(ranks), "host"); }
  /// On as many ranks as there are hosts; on none of them, alone. The outcome of the first rank; what the ranks throw
  /// is thrown.
  static run::RunOutcome on_ranks(const Hosts& hosts, const Body& body) {
    if (hosts.empty()) return body({});
    run::RunOutcome first;
    comm::run_ranks(hosts, [&](comm::Communicator& ranks) {
      const run::RunOutcome outcome = body({.ranks = &ranks});
      if (ranks.rank() == 0) first = outcome;
    });
    return first;
  }
  run::RunOutcome train(const Library& library, const spec::RunSpec& spec, const Hosts& hosts,
                        const std::string& run) const {
    return on_ranks(hosts,
                    [&](const run::RunOptions& options) { return run::start_run(library, spec, path(run), options); });
  }

  /// Of a kind: "step", "epoch", "rank_pace".
  std::vector<nlohmann::json> records(const std::string& run, const std::string& kind) const {
    std::ifstream lines(path(run + "/metrics.jsonl"));
    std::vector<nlohmann::json> found;
    for (std::string line; std::getline(lines, line);) {
      nlohmann::json record = nlohmann::json::parse(line);
      if (record.at("kind") == kind) found.push_back(std::move(record));
    }
    return found;
  }
  /// Those of the records of steps, and those of epochs in training.
  std::vector<double> losses(const std::string& run, const std::string& kind) const {
    std::vector<double> found;
    for (const nlohmann::json& record : records(run, kind))
      found.push_back(record.at(kind == "step" ? "loss" : "train_loss"));
    return found;
  }
  /// All that was recorded of what was computed, with all digits.
  std::vector<std::string> curve(const std::string& run, const std::string& kind) const {
    std::vector<std::string> found;
    for (const nlohmann::json& record : records(run, kind)) {
      std::string text;
      for (const char* key : {"loss", "train_loss", "train_accuracy", "test_loss", "test_accuracy", "gradient_norm"})
        text += record.value(key, nlohmann::json()).dump() + " ";
      found.push_back(text);
    }
    return found;
  }

  /// Losses of one kind of records, within so much of each.
  void expect_near_losses(const std::string& run, const std::string& wanted, double tolerance,
                          const std::string& kind = "step") const {
    const std::vector<double> got = losses(run, kind), all = losses(wanted, kind);
    ASSERT_EQ(got.size(), all.size()) << run;
    for (size_t at = 0; at < got.size(); ++at)
      EXPECT_NEAR(got[at], all[at], tolerance * std::abs(all[at])) << run << ", " << kind << " " << at;
  }

  /// Those of steps and those of epochs.
  void expect_same_losses(const std::string& run, const std::string& wanted, double tolerance = 1e-5) const {
    for (const char* kind : {"step", "epoch"}) expect_near_losses(run, wanted, tolerance, kind);
    EXPECT_FALSE(losses(run, "epoch").empty());
  }

  /// In order.
  std::vector<std::string> files_of_newest(const std::string& run) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(newest(run).path))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  run::Checkpoint newest(const std::string& run) const {
    return *run::CheckpointStore(path(run + "/checkpoints"), 2).read_newest([](const std::string&) {});
  }
  void expect_same_bits(const std::string& run, const std::string& wanted) const {
    const run::Checkpoint one = newest(run), other = newest(wanted);
    EXPECT_EQ(one.manifest.position.step, other.manifest.position.step) << run;
    EXPECT_EQ(one.manifest.position.averaging, other.manifest.position.averaging) << run;
    ASSERT_EQ(one.state.names(), other.state.names()) << run;
    for (const std::string& name : other.state.names()) {
      const Tensor a = one.state.plain(name), b = other.state.plain(name);
      ASSERT_EQ(a.bytes(), b.bytes()) << name << " of " << run;
      EXPECT_EQ(std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())), 0) << name << " of " << run;
    }
    EXPECT_FALSE(curve(wanted, "epoch").empty());
    for (const char* kind : {"step", "epoch"}) EXPECT_EQ(curve(run, kind), curve(wanted, kind)) << run;
  }
};

}  // namespace weft
