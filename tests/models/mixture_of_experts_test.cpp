// The layer of experts beside plain loops: who computes which token, what a full expert leaves out, the balancing loss.
#include "weft/models/mixture_of_experts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "weft/autodiff/autodiff.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/ops/all.h"
#include "weft/runtime/interpret.h"

namespace weft::models {
namespace {

constexpr int64_t kRows = 24, kWidth = 6;

struct Layer {
  std::map<std::string, Tensor> feed;
  std::vector<float> result;
  double extra = 0;
  std::map<std::string, Tensor> gradients;  // of the sum of the result's squares and the extra loss
};

class MixtureOfExperts : public ::testing::Test {
 protected:
  Layer compute(const ExpertSizes& sizes, Mode mode, std::map<std::string, Tensor> feed = {}) {
    ModelBuilder m(registry_, "experts", {kRows, {kWidth}, 4}, mode);
    const ValueId x = m.samples();
    const ValueId y = mixture_of_experts(m, x, "mlp", sizes);
    Model model = m.finish(y);
    Graph& graph = model.graph;
    graph.add_output("y", y);
    Layer layer;
    std::vector<ValueId> wanted = {x};
    std::vector<std::string> names = {"image"};
    for (const ParameterSpec& parameter : model.parameters) {
      wanted.push_back(graph.find_input(parameter.name)->value);
      names.push_back(parameter.name);
    }
    if (mode == Mode::training) {
      const ValueId loss = ops::add(graph, ops::reduce_sum(graph, ops::square(graph, y)), model.extra_loss);
      graph.add_output("loss", loss);
      graph.add_output("extra", model.extra_loss);
      const auto gradients = add_gradients(graph, loss, wanted);
      for (size_t index = 0; index < gradients.size(); ++index)
        graph.add_output("gradient." + names[index], gradients[index]);
    }
    if (feed.empty()) {
      std::mt19937 random(7);
      std::normal_distribution<float> normal(0, 1);
      for (size_t index = 0; index < wanted.size(); ++index) {
        Tensor tensor(graph.type(wanted[index]));
        for (int64_t at = 0; at < tensor.elements(); ++at) tensor.data_as<float>()[at] = normal(random);
        feed.emplace(names[index], tensor);
      }
      feed.emplace("labels", Tensor(graph.type(model.labels)));
    }
    layer.feed = feed;
    const auto outputs = evaluate_graph(graph, feed, CpuBackend(1));
    const Tensor& result = outputs.at("y");
    layer.result = {result.data_as<float>(), result.data_as<float>() + result.elements()};
    if (mode == Mode::training) {
      layer.extra = *outputs.at("extra").data_as<float>();
      loss_ = *outputs.at("loss").data_as<float>();
      for (const std::string& name : names) layer.gradients.emplace(name, outputs.at("gradient." + name));
    }
    return layer;
  }
  OpRegistry registry_ = ops::make_registry();
  double loss_ = 0;
};

/// What the paper says, token after token.
struct Plain {
  std::vector<double> result = std::vector<double>(kRows * kWidth, 0.0);
  double balance = 0;
  int64_t left_out = 0;
};

Plain plain(const ExpertSizes& s, const std::map<std::string, Tensor>& feed) {
  const auto at = [&](const char* name, int64_t index) {
    return static_cast<double>(feed.at(name).data_as<float>()[index]);
  };
  Plain plain;
  std::vector<int64_t> taken(static_cast<size_t>(s.experts), 0);
  std::vector<double> shares(taken.size(), 0), means(taken.size(), 0);
  const int64_t capacity = expert_capacity(kRows, s.experts, s.capacity_factor);
  for (int64_t row = 0; row < kRows; ++row) {
    std::vector<double> weights(taken.size(), 0);
    double sum = 0;
    for (int64_t e = 0; e < s.experts; ++e) {
      double score = 0;
      for (int64_t d = 0; d < kWidth; ++d)
        score += at("image", row * kWidth + d) * at("mlp.router.weight", e * kWidth + d);
      sum += weights[static_cast<size_t>(e)] = std::exp(score);
    }
    const auto best = std::max_element(weights.begin(), weights.end()) - weights.begin();
    for (size_t e = 0; e < weights.size(); ++e) means[e] += weights[e] / sum / kRows;
    shares[static_cast<size_t>(best)] += 1.0 / kRows;
    if (taken[static_cast<size_t>(best)]++ >= capacity) {
      ++plain.left_out;
      continue;
    }
    std::vector<double> hidden;
    for (int64_t h = 0; h < s.hidden; ++h) {
      double value = at("mlp.fc1.bias", best * s.hidden + h);
      for (int64_t d = 0; d < kWidth; ++d)
        value += at("image", row * kWidth + d) * at("mlp.fc1.weight", (best * s.hidden + h) * kWidth + d);
      hidden.push_back(value / 2 * (1 + std::erf(value / std::sqrt(2.0))));
    }
    for (int64_t d = 0; d < kWidth; ++d) {
      double value = at("mlp.fc2.bias", best * kWidth + d);
      for (int64_t h = 0; h < s.hidden; ++h)
        value += hidden[static_cast<size_t>(h)] * at("mlp.fc2.weight", (best * kWidth + d) * s.hidden + h);
      plain.result[static_cast<size_t>(row * kWidth + d)] = value * weights[static_cast<size_t>(best)] / sum;
    }
  }
  for (size_t e = 0; e < taken.size(); ++e) plain.balance += static_cast<double>(s.experts) * shares[e] * means[e];
  return plain;
}

TEST_F(MixtureOfExperts, ComputesEachTokenByItsLikeliestExpert) {
  const ExpertSizes sizes{.experts = 3, .width = kWidth, .hidden = 5, .capacity_factor = 3};
  const Layer layer = compute(sizes, Mode::inference);
  const Plain expected = plain(sizes, layer.feed);
  EXPECT_EQ(expected.left_out, 0);
  for (size_t index = 0; index < layer.result.size(); ++index)
    EXPECT_NEAR(layer.result[index], expected.result[index], 1e-4) << index;
}

TEST_F(MixtureOfExperts, AFullExpertLeavesLaterTokensOut) {
  const ExpertSizes sizes{.experts = 3, .width = kWidth, .hidden = 5, .capacity_factor = 0.5};
  const Layer layer = compute(sizes, Mode::inference);
  const Plain expected = plain(sizes, layer.feed);
  EXPECT_GT(expected.left_out, 0);
  for (size_t index = 0; index < layer.result.size(); ++index)
    EXPECT_NEAR(layer.result[index], expected.result[index], 1e-4) << index;
}

TEST_F(MixtureOfExperts, TrainingAddsTheBalancingLoss) {
  const ExpertSizes sizes{.experts = 3, .width = kWidth, .hidden = 5, .capacity_factor = 1, .balance = 0.25};
  const Layer layer = compute(sizes, Mode::training);
  EXPECT_NEAR(layer.extra, 0.25 * plain(sizes, layer.feed).balance, 1e-5);
}

TEST_F(MixtureOfExperts, GradientsAreThoseOfSmallDifferences) {
  const ExpertSizes sizes{.experts = 3, .width = kWidth, .hidden = 5, .capacity_factor = 1, .balance = 0.25};
  const Layer layer = compute(sizes, Mode::training);
  for (const auto& [name, gradient] : layer.gradients)
    for (const int64_t index : {int64_t{0}, gradient.elements() / 2, gradient.elements() - 1}) {
      double sides[2];
      for (const int side : {0, 1}) {
        auto feed = layer.feed;
        Tensor moved(feed.at(name).type());
        std::copy_n(feed.at(name).data_as<float>(), moved.elements(), moved.data_as<float>());
        moved.data_as<float>()[index] += side == 0 ? -1e-3F : 1e-3F;
        feed.at(name) = moved;
        compute(sizes, Mode::training, feed);
        sides[side] = loss_;
      }
      const double expected = (sides[1] - sides[0]) / 2e-3;
      EXPECT_NEAR(gradient.data_as<float>()[index], expected, 0.02 * std::abs(expected) + 0.02) << name << " " << index;
    }
}

TEST(ExpertCapacity, IsAnEvenShareTimesTheFactorWithinTheRows) {
  EXPECT_EQ(expert_capacity(1024, 8, 1.25), 160);
  EXPECT_EQ(expert_capacity(1000, 3, 1), 334);
  EXPECT_EQ(expert_capacity(16, 8, 1), 4);
  EXPECT_EQ(expert_capacity(2, 8, 1), 2);
}

}  // namespace
}  // namespace weft::models
