// Data of one's own: pictures with noise, from which a network learns to take it away.
//   custom_dataset            trains for one epoch, some seconds; fails below 70 % of explained variance (R2)
//   custom_dataset COMMAND    the program `weft` with these data in it, such as: custom_dataset data 'noisy:?noise=0.5'
#include <weft/weft.h>

#include <cstdio>

using namespace weft;

/// Samples: an image of Fashion-MNIST, 784 numbers from 0 to 1, and noise. Targets: the same without noise.
class NoisyImages : public data::Dataset {
 public:
  NoisyImages(std::unique_ptr<data::Dataset> images, double noise)
      : Dataset({.name = "noisy",
                 .sample_shape = {784},
                 .classes = 784,  // values to predict
                 .task = "regression",
                 .sample_dtype = DType::f32,
                 .target_dtype = DType::f32,
                 .target_shape = {784}}),
        images_(std::move(images)),
        noise_(static_cast<float>(noise)) {}
  int64_t size() const override { return images_->size(); }
  void get(const data::SampleKey& key, std::span<uint8_t> sample) const override {
    get_target(key, sample);
    RandomStream random(mix(key.pass, static_cast<uint64_t>(key.index)));  // other noise in each pass
    for (float& value : data::view_as<float>(sample)) value += noise_ * random.normal();
  }
  void get_target(const data::SampleKey& key, std::span<uint8_t> target) const override {
    uint8_t pixels[784];
    images_->get(key, pixels);
    for (size_t i = 0; i < 784; ++i) data::view_as<float>(target)[i] = static_cast<float>(pixels[i]) / 255;
  }

 private:
  std::unique_ptr<data::Dataset> images_;
  float noise_;
};

int main(int argc, char** argv) try {
  Library library = standard_library();
  const auto open = [](const data::DataSpec& spec, data::Split split, const std::string& /*encoding*/) {
    const double noise = data::SpecOptions(spec, {"noise"}).fraction("noise", 0.3);
    return std::make_unique<NoisyImages>(data::open_dataset("fashion-mnist", split), noise);
  };
  library.add_data({.name = "noisy", .form = "noisy:[?noise=0.3]", .summary = "noise to remove", .open = open});
  if (argc > 1) return cli::run(argc, argv, library);
  spec::RunSpec spec;
  spec.model = {.name = "mlp", .options = {{"hidden", "128"}}};
  spec.data = "noisy:?noise=0.3";
  spec.epochs = 1;
  spec.optimizer.name = "adam";
  const run::RunOutcome outcome = run::start_run(library, spec, /*directory=*/"", {.progress = stderr});
  std::printf("%s: R2 %.3f\n", outcome.directory.c_str(), outcome.summary.test_metric("r2").value_or(0));
  return outcome.summary.test_metric("r2") > 0.7 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "custom_dataset: %s\n", error.what());
  return error.exit_code();
}
