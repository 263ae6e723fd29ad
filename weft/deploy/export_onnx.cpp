#include "weft/deploy/export_onnx.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/version.h"
#include "weft/deploy/onnx_graphs.h"
#include "weft/deploy/onnx_preprocessing.h"
#include "weft/deploy/run_pictures.h"
#include "weft/onnx/export/export_graph.h"
#include "weft/ops/ops.h"
#include "weft/passes/clean/fold_tensors.h"
#include "weft/passes/integer/form_integer_products.h"
#include "weft/program/run_data.h"
#include "weft/run/weights_file.h"

namespace weft::deploy {

namespace {

/// Of a batch.
Graph forward_graph(const Library& library, const std::string& name, const models::ModelInput& input,
                    const models::ModelOptions& options) {
  models::Model model = build_model(library, name, input, options, models::Mode::inference);
  model.graph.set_name(name);
  model.graph.add_output("logits", model.logits);
  return std::move(model.graph);
}

onnx::Model export_graphs(const Library& library, const std::string& name, models::ModelInput input,
                          const models::ModelOptions& model_options, std::map<std::string, Tensor> parameters,
                          const OnnxExportOptions& options) {
  const int64_t batch = options.batch > 0 ? options.batch : 2, other_batch = batch + 1;
  input.batch = batch;
  const Graph graph = forward_graph(library, name, input, model_options);
  std::optional<Graph> other;
  if (options.batch == 0) {
    input.batch = other_batch;
    other = forward_graph(library, name, input, model_options);
  }
  onnx::ExportRequest request{.graph = graph,
                              .batch = batch,
                              .other = other ? &*other : nullptr,
                              .other_batch = other_batch,
                              .parameters = std::move(parameters)};
  if (options.opset > 0) request.opset = options.opset;
  request.metadata = {{"source", options.source}, {"licence", options.licence}};
  std::erase_if(request.metadata, [](const auto& entry) { return entry.second.empty(); });
  return onnx::export_graph(request);
}

}  // namespace

onnx::Model export_run(const Library& library, const run::LoadedRun& run, const OnnxExportOptions& options) {
  std::map<std::string, Tensor> parameters;
  for (const std::string& name : run.state.names()) parameters.emplace(name, run.state.plain(name));
  onnx::Model model = export_graphs(library, run.spec.model.name, program::model_input(run.data, 1),
                                    run.spec.model.options, std::move(parameters), options);
  for (const auto& [key, text] : run::weights_metadata(run.spec, run.data))
    if (key != "format" && key != "data") model.metadata.emplace(key, text);
  const auto pictures = run_pictures(run.data);
  if (pictures) model.metadata.merge(picture_metadata(*pictures));
  if (!options.preprocesses) return model;
  if (!pictures)
    fail(ErrorKind::usage,
         "the run reads no pictures that it normalises, so there is nothing to prepare; leave "
         "--preprocess away");
  add_preprocessing(model, *pictures);
  return model;
}

onnx::Model export_file(const Library& library, onnx::Model model, const std::map<std::string, int64_t>& sizes,
                        const OnnxExportOptions& options) {
  if (options.preprocesses)
    fail(ErrorKind::usage, "'{}' is no run, whose data would say how pixels are prepared; leave --preprocess away",
         model.path);
  std::map<std::string, std::string> metadata = model.metadata;
  const std::string path = model.path;
  if (!options.licence.empty()) metadata["licence"] = options.licence;
  const OnnxGraphs graphs(library, std::move(model), sizes);
  const std::optional<int64_t> fixed = graphs.fixed_batch();
  if (fixed && options.batch > 0 && options.batch != *fixed)
    fail(ErrorKind::usage, "'{}' is for batches of {} alone; leave --batch away", path, *fixed);
  const int64_t batch = fixed ? *fixed : options.batch > 0 ? options.batch : 2, other_batch = batch + 1;
  // Weights of recurrent layers are written from their numbers, which the import has put together.
  const auto device = library.device.make({.threads = 1, .kernels = library.kernels});
  const int64_t opset = options.opset > 0 ? options.opset : onnx::kUsualOpset;
  const auto graph_of = [&](int64_t size) {
    const Graph folded = passes::fold_tensors(graphs.graph_for(size), *device);
    // What this version cannot say of integers becomes reals.
    return passes::fold_dequantized(folded, *device,
                                    [&](const Node& node) { return onnx::first_opset_for(folded, node) > opset; });
  };
  const Graph graph = graph_of(batch);
  std::optional<Graph> other;
  if (!fixed && options.batch == 0) other = graph_of(other_batch);
  onnx::ExportRequest request{.graph = graph,
                              .batch = batch,
                              .other = other ? &*other : nullptr,
                              .other_batch = other_batch,
                              .parameters = {},
                              .metadata = std::move(metadata)};
  request.opset = opset;
  return onnx::export_graph(request);
}

onnx::Model export_model(const Library& library, const std::string& name, uint64_t seed,
                         const OnnxExportOptions& options) {
  if (options.preprocesses)
    fail(ErrorKind::usage, "'{}' is no run, whose data would say how pixels are prepared; leave --preprocess away",
         name);
  const models::ModelInput input = models::find_model(library.models, name).default_input;
  std::map<std::string, Tensor> parameters;
  for (const models::ParameterSpec& parameter :
       build_model(library, name, input, {}, models::Mode::inference).parameters)
    parameters.emplace(parameter.name, models::initialize(parameter, seed));
  onnx::Model model = export_graphs(library, name, input, {}, std::move(parameters), options);
  model.metadata["model"] = name;
  return model;
}

}  // namespace weft::deploy
