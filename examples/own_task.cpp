// A kind of task of one's own: pictures that show several things at once, each of which is to be named. With it come
// its data, its loss, a metric with a key, and a random change of pixels with a key.
//   own_task            trains for twelve epochs, some seconds; fails below 90 % of pictures that are right as a whole
//   own_task COMMAND    the program `weft` with all of it, such as: own_task keys augment.speckle
#include <weft/weft.h>

#include <cmath>
#include <cstdio>

using namespace weft;

constexpr int64_t kSide = 16, kThings = 4;

/// Four kinds of bars - upright on the left or right, lying at the top or bottom - of which each picture has any.
class Bars : public data::Dataset {
 public:
  explicit Bars(data::Split split)
      : Dataset({.name = "bars",
                 .sample_shape = {1, kSide, kSide},
                 .classes = kThings,
                 .class_names = {"left", "right", "top", "bottom"},
                 .task = "multi_label",
                 .target_dtype = DType::f32,
                 .target_shape = {kThings}}),
        seed_(split == data::Split::train ? 1 : 2) {}
  int64_t size() const override { return seed_ == 1 ? 4000 : 1000; }
  void get(const data::SampleKey& key, std::span<uint8_t> pixels) const override {
    RandomStream random = stream_of(key);
    const uint32_t shown = random.below(16);
    for (uint8_t& pixel : pixels) pixel = static_cast<uint8_t>(random.below(100));
    for (int64_t thing = 0; thing < kThings; ++thing) {
      if ((shown >> thing & 1) == 0) continue;
      const int64_t line = random.below(6) + (thing % 2 == 0 ? 1 : kSide / 2 + 1);
      for (int64_t at = 0; at < kSide; ++at)
        pixels[static_cast<size_t>(thing < 2 ? at * kSide + line : line * kSide + at)] = 230;
    }
  }
  void get_target(const data::SampleKey& key, std::span<uint8_t> target) const override {
    const uint32_t shown = stream_of(key).below(16);
    for (size_t thing = 0; thing < kThings; ++thing)
      data::view_as<float>(target)[thing] = static_cast<float>(shown >> thing & 1);
  }

 private:
  RandomStream stream_of(const data::SampleKey& key) const {
    return RandomStream(seed_, static_cast<uint64_t>(key.index));
  }
  uint64_t seed_;
};

/// Whether each thing is there is a question of its own.
ValueId build_binary_cross_entropy(const LossCall& call) {
  return ops::bce_with_logits(call.graph, call.logits, call.labels);
}

/// f32[]: rows of the batch of which every answer is right. A probability above the threshold says yes.
void build_exact_match(const MetricCall& call) {
  call.add_output("exact", [&] {
    Graph& graph = call.graph;
    const double threshold = own_value<double>(call.options.own, "threshold");
    const ValueId logits = ops::add_scalar(graph, call.model.logits, -std::log(threshold / (1 - threshold)));
    const ValueId sides = ops::multiply(graph, ops::sign(graph, logits),
                                        ops::add_scalar(graph, ops::multiply_scalar(graph, call.model.labels, 2), -1));
    const ValueId worst = ops::reduce_min(graph, sides, {1});  // 1 where all agree
    return ops::reduce_sum(graph, ops::clip(graph, worst, 0, 1), {}, false, "exact");
  });
}

/// Pixels that are lost, each with this probability.
std::optional<data::PixelChange> make_speckle(const spec::AugmentSpec& augment) {
  const double share = own_value<double>(augment.own, "speckle");
  if (share == 0) return std::nullopt;
  return data::PixelChange{.name = "speckle", .apply = [share](const data::PixelCall& call) {
                             for (float& value : call.image)
                               if (static_cast<double>(call.random.uniform()) < share) value = 0;
                           }};
}

int main(int argc, char** argv) try {
  Library library = standard_library();
  library.add_loss({"binary_cross_entropy", "of each label on its own", {}, build_binary_cross_entropy});
  library.add_metric({.name = "exact_match",
                      .summary = "share of the samples of which every label is right",
                      .label = "exact match",
                      .is_share = true,
                      .keys = {{.name = "threshold", .value = 0.5, .low = 0.01, .high = 0.99, .help = "says yes"}},
                      .outputs = {"exact"},
                      .build = build_exact_match});
  library.add_augmentation({.name = "speckle",
                            .summary = "pixels that are lost",
                            .keys = {{.name = "speckle", .value = 0.0, .low = 0, .high = 1, .help = "share of pixels"}},
                            .make = make_speckle});
  library.add_task({.name = "multi_label",
                    .summary = "each of several labels, or not",
                    .loss = "binary_cross_entropy",
                    .metrics = {"exact_match"},
                    .decided_by = "exact_match",
                    .answer = ops::sigmoid,
                    .answer_name = "values",
                    .predict = infer::predict_samples,
                    .predicts_data = true});
  const auto open = [](const data::DataSpec&, data::Split split, const std::string&) {
    return std::make_unique<Bars>(split);
  };
  library.add_data({.name = "bars", .form = "bars", .summary = "pictures of bars", .open = open});
  if (argc > 1) return cli::run(argc, argv, library);
  spec::RunSpec spec;
  for (const char* setting : {"model=lenet5", "data=bars", "epochs=12", "optimizer.name=adam", "augment.speckle=0.02"})
    spec::set_from_text(spec, setting, library);
  const run::RunOutcome outcome = run::start_run(library, spec, /*directory=*/"", {.progress = stderr});
  const double exact = outcome.summary.test_metric("exact_match").value_or(0);
  std::printf("%s: %.1f %% right as a whole\n", outcome.directory.c_str(), 100 * exact);
  return exact > 0.9 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "own_task: %s\n", error.what());
  return error.exit_code();
}
