// What goes around an optimiser: bounds of the gradients, groups, look-ahead, the average of the weights.
#include "tests/support/optimizer_problem.h"
#include "weft/base/error.h"
#include "weft/models/model.h"
#include "weft/step/optimizers/ema.h"
#include "weft/step/optimizers/hidden_weights.h"
#include "weft/step/optimizers/lookahead.h"

namespace weft::step {
namespace {

spec::RunSpec plain_sgd(double rate) {
  spec::RunSpec spec = spec_of("sgd", rate, 0);
  spec.optimizer.momentum = 0;
  return spec;
}

std::string error_of(const spec::RunSpec& spec) {
  try {
    Problem problem(spec);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "no error";
}

TEST(ClipGradients, ByNormIsPyTorchs) {
  spec::RunSpec spec = plain_sgd(1);
  spec.clip.norm = 0.5;
  Problem problem(spec);
  const Numbers gw = gradient(start(12, 0), 0, 0), gb = gradient(start(3, 1), 0, 1);
  double square = 0;
  for (const double g : gw) square += g * g;
  for (const double g : gb) square += g * g;
  const double factor = 0.5 / (std::sqrt(square) + 1e-6);  // torch.nn.utils.clip_grad_norm_
  ASSERT_LT(factor, 1);
  Numbers expected = start(12, 0);
  for (size_t i = 0; i < 12; ++i) expected[i] -= factor * gw[i];
  problem.step(0, 1);
  expect_near(problem.values("w"), expected, 1e-6);
  EXPECT_NEAR(static_cast<double>(problem.executor().scalar_output("gradient_norm")), std::sqrt(square), 1e-5);
}

TEST(ClipGradients, ByALargeNormChangesNothing) {
  spec::RunSpec spec = plain_sgd(0.1), bounded = spec;
  bounded.clip.norm = 1000;
  EXPECT_EQ(train(spec), train(bounded));
}

TEST(ClipGradients, ByValueBoundsEachElement) {
  spec::RunSpec spec = plain_sgd(1);
  spec.clip.value = 0.3;
  Problem problem(spec);
  Numbers expected = start(12, 0);
  const Numbers g = gradient(expected, 0, 0);
  for (size_t i = 0; i < 12; ++i) expected[i] -= std::clamp(g[i], -0.3, 0.3);
  problem.step(0, 1);
  expect_near(problem.values("w"), expected, 1e-6);
}

// Zhang et al. 2019, algorithm 1, around momentum.
TEST(Lookahead, IsThePapers) {
  spec::RunSpec spec = spec_of("sgd", 0.05, 0);
  spec.lookahead = {.steps = 5, .alpha = 0.3};
  std::map<bool, Numbers> slow{{false, start(12, 0)}, {true, start(3, 1)}},
      velocity{{false, Numbers(12, 0)}, {true, Numbers(3, 0)}};
  const Numbers expected = reference(
      [&](Numbers& w, const Numbers& g, int step, bool is_bias) {
        for (size_t i = 0; i < w.size(); ++i) {
          velocity[is_bias][i] = 0.9 * velocity[is_bias][i] + g[i];
          w[i] -= 0.05 * velocity[is_bias][i];
          if ((step + 1) % 5 == 0) w[i] = slow[is_bias][i] += 0.3 * (w[i] - slow[is_bias][i]);
        }
      },
      13);
  Problem problem(spec);
  for (int step = 0; step < 13; ++step) {
    problem.executor().set_scalar("synchronise", (step + 1) % 5 == 0 ? 1 : 0);
    problem.executor().set_scalar("slow_share", (step + 1) % 5 == 0 ? spec.lookahead.alpha : 0);
    problem.step(step, 0.05);
  }
  expect_near(problem.all(), expected, 2e-6);
  expect_near(problem.values("optimizer/slow/w"), slow[false], 2e-6);
}

// airbench94: 1 - 0.95^5 (updates done / all)^3
TEST(Lookahead, AlphaMayChangeOverTheRun) {
  const spec::LookaheadSpec falling{.steps = 5, .alpha = 1, .end_alpha = 1 - std::pow(0.95, 5), .power = 3};
  for (const int64_t step : {0, 4, 238, 475})
    EXPECT_NEAR(lookahead_alpha(falling, step, 476), 1 - std::pow(0.95, 5) * std::pow((step + 1) / 476.0, 3), 1e-15);
  EXPECT_EQ(lookahead_alpha({.steps = 5, .alpha = 0.3}, 475, 476), 0.3);
}

TEST(Ema, AveragesTheWeightsAfterEachUpdate) {
  spec::RunSpec spec = plain_sgd(0.05);
  spec.ema.decay = 0.9;
  Numbers average = start(12, 0);
  Problem problem(spec);
  for (int step = 0; step < 20; ++step) {
    const double decay = ema_decay(spec.ema, step);
    problem.executor().set_scalar("ema_decay", decay);
    problem.step(step, 0.05);
    const Numbers w = problem.values("w");
    for (size_t i = 0; i < 12; ++i) average[i] = decay * average[i] + (1 - decay) * w[i];
  }
  expect_near(problem.values("optimizer/ema/w"), average, 1e-6);
  const State averaged = averaged_state(problem.state);
  EXPECT_EQ(averaged.names(), (std::vector<std::string>{"b", "w"}));
  EXPECT_EQ(averaged.get("w").data_as<float>()[3], problem.state.get("optimizer/ema/w").data_as<float>()[3]);
}

// tf.train.ExponentialMovingAverage with num_updates.
TEST(Ema, DecayWarmsUpAsTensorFlows) {
  const spec::EmaSpec spec{.decay = 0.99, .warmup = true};
  EXPECT_DOUBLE_EQ(ema_decay(spec, 0), 0.1);
  EXPECT_DOUBLE_EQ(ema_decay(spec, 89), 90.0 / 99);
  EXPECT_DOUBLE_EQ(ema_decay(spec, 100000), 0.99);
  EXPECT_DOUBLE_EQ(ema_decay({.decay = 0.99, .warmup = false}, 0), 0.99);
}

TEST(Ema, GoesAfterLookahead) {
  spec::RunSpec spec = plain_sgd(0.05);
  spec.ema.decay = 0.5;
  spec.lookahead = {.steps = 1, .alpha = 0.5};
  Problem problem(spec);
  problem.executor().set_scalar("synchronise", 1);
  problem.executor().set_scalar("slow_share", 0.5);
  problem.executor().set_scalar("ema_decay", 0);
  problem.step(0, 0.05);
  EXPECT_EQ(problem.values("optimizer/ema/w"), problem.values("w"));
  EXPECT_EQ(problem.values("optimizer/slow/w"), problem.values("w"));
}

TEST(Groups, HaveTheirOwnRateAndDecay) {
  spec::RunSpec spec = plain_sgd(0.1);
  spec.optimizer.weight_decay = 0.2;
  spec.optimizer.groups["biases"] = {.match = "b*", .learning_rate_factor = 2, .weight_decay = 0.3, .schedule = ""};
  Problem problem(spec);
  problem.step(0, 0.1);
  Numbers w = start(12, 0), b = start(3, 1);
  const Numbers gw = gradient(w, 0, 0), gb = gradient(b, 0, 1);
  for (size_t i = 0; i < 12; ++i) w[i] -= 0.1 * (gw[i] + 0.2 * w[i]);
  for (size_t i = 0; i < 3; ++i) b[i] -= 0.2 * (gb[i] + 0.3 * b[i]);
  expect_near(problem.values("w"), w, 1e-6);
  expect_near(problem.values("b"), b, 1e-6);
}

TEST(Groups, OfRateZeroStayAsTheyAre) {
  spec::RunSpec spec = spec_of("adamw", 0.1, 0.1);
  spec.optimizer.groups["frozen"] = {
      .match = "regex:[wx]", .learning_rate_factor = 0, .weight_decay = -1, .schedule = ""};
  Problem problem(spec);
  const Numbers before = problem.values("w");
  problem.step(0, 0.1);
  EXPECT_EQ(problem.values("w"), before);
  EXPECT_NE(problem.values("b"), Numbers(3, 0));
  EXPECT_EQ(problem.slots.size(), 2u) << "no slots for what does not move";
}

TEST(Groups, OfRateZeroTakeNoPartInTheNorm) {
  spec::RunSpec spec = plain_sgd(1);
  spec.clip.norm = 0.5;
  spec.optimizer.groups["frozen"] = {.match = "w", .learning_rate_factor = 0, .weight_decay = -1, .schedule = ""};
  Problem problem(spec);
  problem.step(0, 1);
  Numbers b = start(3, 1);
  const Numbers g = gradient(b, 0, 1);
  const double norm = std::sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]);
  ASSERT_GT(norm, 0.5);
  for (size_t i = 0; i < 3; ++i) b[i] -= 0.5 / (norm + 1e-6) * g[i];
  expect_near(problem.values("b"), b, 1e-6);
}

TEST(Groups, OfAScheduleOfTheirOwnReadTheirOwnRate) {
  spec::RunSpec spec = plain_sgd(0.1);
  spec.optimizer.groups["bias"] = {
      .match = "b", .learning_rate_factor = 0.5, .weight_decay = -1, .schedule = "constant"};
  Problem problem(spec);
  problem.executor().set_scalar("learning_rate/bias", 0.4);
  problem.step(0, 0.1);
  Numbers b = start(3, 1);
  const Numbers g = gradient(b, 0, 1);
  for (size_t i = 0; i < 3; ++i) b[i] -= 0.2 * g[i];
  expect_near(problem.values("b"), b, 1e-6);
}

TEST(Groups, SayWhatIsWrong) {
  spec::RunSpec spec = plain_sgd(0.1);
  spec.optimizer.groups["head"] = {.match = "head.*", .learning_rate_factor = 1, .weight_decay = -1, .schedule = ""};
  EXPECT_EQ(error_of(spec), "optimizer.groups.head.match = 'head.*' matches no parameter; known: w, b");
  spec.optimizer.groups["head"].match = "w";
  spec.optimizer.groups["rest"].match = "*";
  EXPECT_EQ(error_of(spec),
            "parameter 'w' belongs to optimizer.groups.head and optimizer.groups.rest; narrow one match");
  spec.optimizer.groups.erase("rest");
  spec.optimizer.groups["head"].match = "regex:(";
  EXPECT_EQ(error_of(spec), "optimizer.groups.head.match = 'regex:(' is no regular expression (ECMAScript)");
}

std::vector<std::string> hidden_of(const std::string& model_name) {
  const OpRegistry registry = ops::make_registry();
  models::ModelInput input = models::find_model(models::all_models(), model_name).default_input;
  input.batch = 2;
  const models::Model model = models::build(registry, model_name, input, {}, models::Mode::training);
  std::vector<ValueId> values;
  std::vector<std::string> names, found;
  for (const models::ParameterSpec& parameter : model.parameters) {
    values.push_back(model.graph.find_input(parameter.name)->value);
    names.push_back(parameter.name);
  }
  const std::vector<bool> hidden = find_hidden_weights(model.graph, values);
  for (size_t i = 0; i < names.size(); ++i)
    if (hidden[i]) found.push_back(names[i]);
  return found;
}

TEST(HiddenWeights, OfAPerceptronAreThoseBetween) { EXPECT_EQ(hidden_of("lenet5").size(), 3u) << "of five layers"; }

TEST(HiddenWeights, OfAResidualNetworkAreAllConvolutionsButTheFirst) {
  const std::vector<std::string> found = hidden_of("resnet18");
  EXPECT_EQ(found.size(), 19u) << "20 convolutions";
  EXPECT_EQ(std::count(found.begin(), found.end(), "conv1.weight"), 0);
  EXPECT_EQ(std::count(found.begin(), found.end(), "layer1.0.conv1.weight"), 1);
  EXPECT_EQ(std::count(found.begin(), found.end(), "fc.weight"), 0);
}

TEST(HiddenWeights, OfATransformerAreTheMatricesOfItsBlocks) {
  const std::vector<std::string> found = hidden_of("transformer_lm");
  EXPECT_EQ(found.size(), 16u) << "4 in each of 4 blocks";
  for (const std::string& name : found) EXPECT_EQ(name.substr(0, 7), "blocks.") << name;
}

}  // namespace
}  // namespace weft::step
