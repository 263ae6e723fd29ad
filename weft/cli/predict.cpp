// weft predict: the most likely classes of image files.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "weft/base/error.h"
#include "weft/base/table.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/data/augment.h"
#include "weft/data/image.h"
#include "weft/ops/all.h"
#include "weft/train/run_data.h"
#include "weft/train/step.h"
#include "weft/train/step_cache.h"

namespace weft::cli {

namespace {

struct PredictOptions {
  std::string run, checkpoint = "last";
  std::vector<std::string> files;
  int64_t top = 5;
  int64_t threads = 0;
  bool json = false;
};

std::string class_name(const train::DataDescription& data, int64_t index) {
  const auto position = static_cast<size_t>(index);
  return position < data.class_names.size() ? data.class_names[position] : fmt::format("class {}", index);
}

/// Class indices, most likely first.
std::vector<int64_t> ranking(const Tensor& probabilities, int64_t top) {
  const float* p = probabilities.data_as<float>();
  std::vector<int64_t> order(static_cast<size_t>(probabilities.elements()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return p[a] > p[b]; });
  order.resize(static_cast<size_t>(std::min<int64_t>(top, probabilities.elements())));
  return order;
}

class Predictor {
 public:
  explicit Predictor(LoadedRun run)
      : run_(std::move(run)),
        registry_(ops::make_registry()),
        backend_(static_cast<int>(run_.spec.threads)),
        steps_(
            [this](int64_t batch) {
              return train::build_prediction_step(registry_, run_.spec, train::model_input(run_.data, batch));
            },
            backend_, {.passes = {}, .threads = static_cast<int>(run_.spec.threads)}),
        normalization_(run_.data.statistics, run_.data.sample_shape[0]),
        input_(DType::f32, run_.data.sample_shape),
        labels_(DType::i32, Shape{1}) {
    require_memory(run_.spec.model.name, 1, steps_.compiled(1).plan.total_bytes(), "predict on a machine with more");
    steps_.executor(1).bind_state(run_.state);
    steps_.executor(1).bind_batch("image", input_.data());
    steps_.executor(1).bind_batch("labels", labels_.data());  // an input of every model, read by no node here
  }

  const train::DataDescription& data() const { return run_.data; }

  Tensor probabilities(const std::string& file) {
    const data::Image image = data::fit(data::read_image(file), run_.data.sample_shape);
    data::transform(image.pixels, run_.data.sample_shape, {}, data::identity_choice({}), normalization_,
                    {input_.data_as<float>(), static_cast<size_t>(input_.elements())});
    steps_.executor(1).run();
    return steps_.executor(1).output("probabilities");
  }

 private:
  LoadedRun run_;
  OpRegistry registry_;
  CpuBackend backend_;
  train::StepCache steps_;
  data::Normalization normalization_;
  Tensor input_, labels_;
};

int predict_command(const PredictOptions& options) {
  Predictor predictor(load_run(options.run, options.checkpoint, options.threads));
  auto results = nlohmann::ordered_json::array();
  int code = 0;
  for (const std::string& file : options.files) {
    Tensor probabilities;
    try {
      probabilities = predictor.probabilities(file);
    } catch (const Error& error) {  // the other files are predicted all the same
      fmt::print(stderr, "weft: {}\n", error.what());
      code = 1;
      continue;
    }
    auto classes = nlohmann::ordered_json::array();
    Table table({{"", Align::left}, {"", Align::right}});
    for (const int64_t index : ranking(probabilities, options.top)) {
      const auto p = static_cast<double>(probabilities.data_as<float>()[index]);
      const std::string name = class_name(predictor.data(), index);
      classes.push_back({{"class", index}, {"name", name}, {"probability", p}});
      table.add_row({"  " + name, fmt::format("{:.2f} %", 100 * p)});
    }
    results.push_back({{"file", file}, {"classes", classes}});
    if (!options.json) fmt::print("{}\n{}", file, table.text());
  }
  if (options.json) fmt::print("{}\n", results.dump(2));
  return code;
}

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  auto options = std::make_shared<PredictOptions>();
  CLI::App* command = app.add_subcommand("predict", "Name the most likely classes of image files");
  command->add_option("RUN", options->run, "Run directory")->required();
  command->add_option("FILE", options->files, "PNG, JPEG, PGM or PPM images")->required();
  command->add_option("--top", options->top, "Classes to show")->check(CLI::Range(1, 1000000));
  command->add_option("--checkpoint", options->checkpoint, "last or best")->check(CLI::IsMember({"last", "best"}));
  command->add_option("--threads", options->threads, "Default: as in training")->check(CLI::Range(0, 1024));
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, &action] { action = [options] { return predict_command(*options); }; });
}

}  // namespace weft::cli
