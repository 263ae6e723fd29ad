#include "weft/step/test_time_views.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/fit_rig.h"
#include "weft/base/error.h"
#include "weft/step/metrics/entries.h"
#include "weft/train/evaluate.h"

namespace weft::step {
namespace {

/// One image of 1x3x4 pixels: 10 row + column.
data::Batch counted_image() {
  data::Batch batch{Tensor(DType::f32, Shape{1, 1, 3, 4}), Tensor(DType::i32, Shape{1}), 1};
  for (int64_t i = 0; i < 12; ++i) batch.samples.data_as<float>()[i] = static_cast<float>(10 * (i / 4) + i % 4);
  batch.targets.data_as<int32_t>()[0] = 7;
  return batch;
}

std::vector<float> shown_by(const data::View& view) {
  ViewedBatch viewed({view}, {"counted", {1, 3, 4}, 10, {}}, 1);
  const data::Batch& shown = viewed.show(counted_image());
  EXPECT_EQ(shown.targets.data_as<int32_t>()[0], 7);
  return {shown.samples.data_as<float>(), shown.samples.data_as<float>() + 12};
}

TEST(TestTimeViews, MoveReflectAndMirror) {
  EXPECT_EQ(shown_by({}), (std::vector<float>{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}));
  EXPECT_EQ(shown_by({.mirrored = true}), (std::vector<float>{3, 2, 1, 0, 13, 12, 11, 10, 23, 22, 21, 20}));
  EXPECT_EQ(shown_by({.down = 1, .right = 1}), (std::vector<float>{11, 10, 11, 12, 1, 0, 1, 2, 11, 10, 11, 12}));
  EXPECT_EQ(shown_by({.down = -1, .right = -1}), (std::vector<float>{11, 12, 13, 12, 21, 22, 23, 22, 11, 12, 13, 12}));
  EXPECT_EQ(shown_by({.right = 1, .mirrored = true}), (std::vector<float>{2, 1, 0, 1, 12, 11, 10, 11, 22, 21, 20, 21}));
}

TEST(TestTimeViews, OfEachKindWeighOneTogether) {
  const std::vector<size_t> counts = {1, 2, 6};
  for (size_t kind = 0; kind < 3; ++kind) {
    const std::vector<data::View> views = data::views_of(data::tta_names()[kind]);
    EXPECT_EQ(views.size(), counts[kind]);
    double sum = 0, unmoved = 0, mirrored = 0;
    for (const data::View& view : views) {
      sum += view.weight;
      if (view.down == 0 && view.right == 0) unmoved += view.weight;
      if (view.mirrored) mirrored += view.weight;
    }
    EXPECT_EQ(sum, 1);
    EXPECT_EQ(unmoved, kind == 2 ? 0.5 : 1);
    EXPECT_EQ(mirrored, kind == 0 ? 0 : 0.5);
  }
}

/// Loss and accuracy of mean logits, computed from the probabilities of one view of one image at a time: logarithms of
/// probabilities are logits but for a number that is the same for all classes.
train::Evaluation evaluated_view_by_view(Rig& rig, const std::vector<data::View>& views) {
  const Library library = standard_library();
  program::StepCache prediction(
      [&](const spec::StepShape& shape) {
        return build_prediction_step(library, rig.spec, program::model_input(rig.description, shape));
      },
      rig.backend, {.passes = {}, .threads = rig.backend.threads()});
  Executor& executor = prediction.executor(1);
  executor.bind_state(rig.state);
  train::Evaluation result;
  double correct = 0;
  const int64_t samples = rig.test_set.size();
  for (int64_t index = 0; index < samples; ++index) {
    data::Batch batch{Tensor(DType::f32, Shape{1, 1, kSize, kSize}), Tensor(DType::i32, Shape{1}), 1};
    const Tensor sample = rig.test_loader.load_sample(index, 0);
    std::copy_n(sample.data_as<float>(), kSize * kSize, batch.samples.data_as<float>());
    double mean[3] = {0, 0, 0};
    for (const data::View& view : views) {
      ViewedBatch viewed({view}, rig.test_set.info(), 1);
      bind_batch(executor, viewed.show(batch));
      executor.run();
      const Tensor probabilities = executor.output("probabilities");
      for (size_t c = 0; c < 3; ++c)
        mean[c] += view.weight * std::log(static_cast<double>(probabilities.data_as<float>()[c]));
    }
    const auto label = static_cast<size_t>(rig.test_set.label(index));
    result.loss += std::log(std::exp(mean[0]) + std::exp(mean[1]) + std::exp(mean[2])) - mean[label];
    correct += std::max_element(mean, mean + 3) - mean == static_cast<std::ptrdiff_t>(label) ? 1 : 0;
  }
  result.loss /= static_cast<double>(samples);
  result.metrics = {{"accuracy", correct / static_cast<double>(samples)}};
  return result;
}

TEST(TestTimeViews, EvaluationIsThatOfTheMeanOfTheLogits) {
  for (const std::string& tta : data::tta_names()) {
    spec::RunSpec spec = spec_for("lenet5", 1);
    spec.evaluation.tta = tta;
    Rig rig(spec);
    std::optional<double> loss_in_training;
    train::Hooks hooks;
    hooks.on_epoch = [&](const EpochMetrics& metrics) { loss_in_training = metrics.test_loss; };
    rig.fit_from({}, hooks);
    const train::Evaluation result =
        train::evaluate(rig.evaluation, rig.state, rig.test_loader, {.metrics = {accuracy_entry()}, .tta = tta});
    const train::Evaluation expected = evaluated_view_by_view(rig, data::views_of(tta));
    EXPECT_EQ(result.samples, 40);
    EXPECT_EQ(result.metrics, expected.metrics) << tta;
    EXPECT_NEAR(result.loss, expected.loss, 1e-5) << tta;
    EXPECT_EQ(loss_in_training, result.loss) << "evaluation in training sees the same views";
  }
}

TEST(TestTimeViews, AreOfImagesInClasses) {
  const Library library = standard_library();
  spec::RunSpec spec;
  spec.model.name = "transformer_lm";
  spec.evaluation.tta = "flip";
  const auto error_of = [&](const models::ModelInput& input) {
    try {
      build_evaluation_step(library, spec, input);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string end =
      "test-time augmentation is for networks that say of images which class each shows; set evaluation.tta=none";
  EXPECT_EQ(error_of({2, {16}, 65}), "[transformer_lm] " + end);
  spec.model.name = "unet_small";
  EXPECT_EQ(error_of({2, {3, 32, 32}, 5}), "[unet_small] " + end);
  spec.model.name = "mlp";
  EXPECT_EQ(error_of({2, {8}, 5}), "[mlp] " + end);
  EXPECT_EQ(error_of({2, {3, 8, 8}, 5}), "no error");
}

}  // namespace
}  // namespace weft::step
