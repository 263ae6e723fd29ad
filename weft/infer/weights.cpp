#include "weft/infer/weights.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "weft/base/error.h"
#include "weft/ops/ops.h"
#include "weft/program/driver.h"
#include "weft/program/run_data.h"
#include "weft/run/initial_weights.h"
#include "weft/spec/compile_options.h"
#include "weft/step/step.h"
#include "weft/step/test_time_views.h"
#include "weft/tensor/safetensors.h"

namespace weft::infer {

namespace {

models::Model inference_model(const Library& library, const run::LoadedRun& run, int64_t batch) {
  return build_model(library, run.spec.model.name, program::model_input(run.data, batch), run.spec.model.options,
                     models::Mode::inference);
}

std::vector<float> parse_numbers(const std::string& text, const std::string& option, int64_t count, float above) {
  std::vector<float> numbers;
  const char* cursor = text.data();
  const char* const end = text.data() + text.size();
  for (bool more = true; more;) {
    float value = 0;
    const auto [next, code] = std::from_chars(cursor, end, value);
    if (code != std::errc() || (next != end && *next != ',') || !(value > above) || !(value < 1e6f)) break;
    numbers.push_back(value);
    more = next != end;
    cursor = next + 1;
    if (!more && static_cast<int64_t>(numbers.size()) == count) return numbers;
  }
  fail(ErrorKind::usage, "{} '{}': wants {} numbers{}, one per channel, such as 0.485,0.456,0.406", option, text, count,
       above == 0 ? " above 0" : "");
}

}  // namespace

run::LoadedRun run_of_weights(const Library& library, const WeightsChoice& choice) {
  if (choice.model.empty() || choice.data.empty())
    fail(ErrorKind::usage, "--weights without a run directory wants --model and --data: what the weights belong to");
  run::LoadedRun run;
  spec::set_field(run.spec, "model.name", choice.model, "--model", library);
  spec::set_field(run.spec, "data", choice.data, "--data", library);
  spec::set_field(run.spec, "threads", choice.threads, "--threads", library);
  for (const std::string& assignment : choice.set) spec::set_from_text(run.spec, assignment, library);
  spec::resolve(run.spec, library);
  spec::choose_automatic_precision(run.spec, *library.device.make({}));
  spec::RunSpec opened = run.spec;
  opened.batch = 1;  // nothing is trained: any number of samples will do
  run.data = program::open_run_data(library, opened).description;
  replace_weights(library, run, choice.weights);
  return run;
}

void replace_weights(const Library& library, run::LoadedRun& run, const std::string& weights) {
  const models::Model model = inference_model(library, run, 1);
  run.state = State();
  run::load_weights(run.state, model.parameters, weights, run::Head::must_fit);
  run.checkpoint = weights;
}

void set_statistics(run::LoadedRun& run, const std::string& mean, const std::string& deviation) {
  if (mean.empty() && deviation.empty()) return;
  const data::DatasetInfo& info = run.data.info;
  if (info.sample_dtype != DType::u8)
    fail(ErrorKind::usage, "--mean and --deviation are of images, '{}' holds {}; leave them away", info.name,
         info.item());
  const int64_t channels = info.sample_shape[0];
  if (!mean.empty()) run.data.statistics.mean = parse_numbers(mean, "--mean", channels, -1e6f);
  if (!deviation.empty()) run.data.statistics.deviation = parse_numbers(deviation, "--deviation", channels, 0);
}

void write_logits(const Library& library, run::LoadedRun& run, const data::Dataset& dataset,
                  const std::filesystem::path& path) {
  const std::unique_ptr<Device> device =
      library.device.make({.threads = static_cast<int>(run.spec.threads), .kernels = library.kernels});
  const std::vector<data::View> views = data::views_of(run.spec.evaluation.tta);
  program::Program program(
      [&](const spec::StepShape& shape) {
        models::Model model = inference_model(library, run, shape.batch * static_cast<int64_t>(views.size()));
        step::average_views(model, views, shape.batch);
        const bool steps_first = run.data.info.target_kind() == data::TargetKind::text;  // [T,N,classes]
        model.graph.add_output("logits",
                               steps_first ? ops::transpose(model.graph, model.logits, {1, 0, 2}) : model.logits);
        return std::move(model.graph);
      },
      *device, spec::compile_options(run.spec, *device));
  data::Loader loader(dataset, program::evaluation_loader_options(run.spec, run.data));
  std::optional<step::ViewedBatch> viewed;
  if (views.size() > 1) viewed.emplace(views, dataset.info(), std::min(run.spec.evaluation.batch, dataset.size()));
  loader.start(0, 0, 1);
  program::Driver driver(program, run.state);
  Tensor all;
  int64_t done = 0;
  for (int64_t step = 0; step < loader.steps_per_epoch(); ++step) {
    const data::Batch& batch = loader.next();
    if (driver.shape() != spec::StepShape(batch.count)) driver.select(batch.count);
    driver.bind_batch(viewed ? viewed->show(batch) : batch);
    driver.run();
    const Tensor logits = driver.executor().output("logits");
    const int64_t per_sample = logits.elements() / batch.count;
    if (done == 0) all = Tensor(DType::f32, Shape{dataset.size(), per_sample});
    std::memcpy(all.data_as<float>() + done * per_sample, logits.data(),
                static_cast<size_t>(logits.elements()) * sizeof(float));
    done += batch.count;
  }
  SafetensorsFile file;
  file.tensors.emplace("logits", std::move(all));
  write_safetensors(path, file);
}

}  // namespace weft::infer
