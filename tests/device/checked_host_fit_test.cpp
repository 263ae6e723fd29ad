// A whole training loop on the checked host - sums over batches, loss scaling, averaged weights, evaluations,
// checkpoints - reaches the bits of the CPU: nothing beside the step reads the states where they lie.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/checked_host.h"
#include "tests/support/fit_rig.h"
#include "tests/support/temporary_folder.h"
#include "weft/run/checkpoint/store.h"

namespace weft::train {
namespace {

struct Trained {
  std::vector<float> weights, saved;
  double test_loss = 0;
};

Trained train_on(std::shared_ptr<const Device> device, const spec::RunSpec& spec) {
  Rig rig(spec, 100, {}, std::move(device));
  const TemporaryFolder folder;
  run::CheckpointStore store(folder.path(), 1);
  Trained trained;
  Hooks hooks;
  hooks.on_epoch = [&](const step::EpochMetrics& metrics) { trained.test_loss = metrics.test_loss.value_or(0); };
  hooks.save = [&](const step::Position& position) {
    run::Manifest manifest;
    manifest.position = position;
    store.write(rig.state, manifest);
  };
  EXPECT_TRUE(rig.fit_from({}, hooks).finished);
  trained.weights = rig.weights();
  const auto checkpoint = store.read_newest([](const std::string&) {});
  if (!checkpoint) return trained;
  for (const std::string& tensor : checkpoint->state.names()) {
    const Tensor plain = checkpoint->state.plain(tensor);
    trained.saved.insert(trained.saved.end(), plain.data_as<float>(), plain.data_as<float>() + plain.elements());
  }
  return trained;
}

TEST(CheckedHostFit, WholeLoopsReachTheSameBits) {
  for (const int64_t accumulate : {1, 4}) {
    spec::RunSpec spec = full_spec("adamw", accumulate, 1);
    spec.loss_scaling.mode = "dynamic";
    const Trained on_cpu = train_on(nullptr, spec);
    const Trained checked = train_on(std::make_shared<CheckedHost>(2), spec);
    EXPECT_EQ(on_cpu.weights, checked.weights) << accumulate;
    EXPECT_EQ(on_cpu.test_loss, checked.test_loss) << accumulate;
    EXPECT_EQ(on_cpu.saved, checked.saved) << accumulate;
    EXPECT_FALSE(checked.saved.empty());
  }
}

}  // namespace
}  // namespace weft::train
