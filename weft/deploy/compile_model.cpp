#include "weft/deploy/compile_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "weft/base/error.h"
#include "weft/base/number_list.h"
#include "weft/base/version.h"
#include "weft/data/formats/picture_options.h"
#include "weft/deploy/fixed_integers.h"
#include "weft/deploy/inference_graph.h"
#include "weft/deploy/onnx_graphs.h"
#include "weft/deploy/run_pictures.h"
#include "weft/graph/generalize.h"
#include "weft/graph/symbolic_text.h"
#include "weft/graph/text.h"
#include "weft/passes/clean/eliminate_dead_code.h"
#include "weft/passes/fuse/fold_batch_norm.h"
#include "weft/passes/fuse/fuse_bias.h"
#include "weft/program/run_data.h"
#include "weft/run/weights_file.h"
#include "weft/step/step.h"

namespace weft::deploy {

namespace {

using engine::DeployedModel;
using engine::PictureInput;

/// The inference graph for a size of the batch.
using GraphFor = std::function<Graph(int64_t batch)>;

void add_constants(DeployedModel& model, const Graph& graph) { model.constants.merge(find_constants(graph)); }

void set_ports(DeployedModel& model, const SymbolicGraph& graph) {
  for (const GraphInput& input : graph.inputs())
    model.inputs.push_back({input.name, to_string(graph.type(input.value))});
  for (const GraphOutput& output : graph.outputs())
    model.outputs.push_back({output.name, to_string(graph.type(output.value))});
}

// Beyond the sizes that files cut at (ends=[1000] and the like), and odd.
constexpr int64_t kLargeBatch = 4099;

std::vector<TensorType> output_types(const Graph& graph) {
  std::vector<TensorType> types;
  for (const GraphOutput& output : graph.outputs()) types.push_back(graph.type(output.value));
  return types;
}

/// A batch of 1 has forms of its own, such as sums without a repetition in front of them; what it gives is the same.
bool gives_the_same_for_one(const SymbolicGraph& open, const GraphFor& graph_for) {
  try {
    return output_types(bind_symbols(open, {{engine::kBatchSymbol, 1}})) == output_types(graph_for(1));
  } catch (const Error&) {
    return false;
  }
}

/// One for any size, made of those of two and three; nullopt where sizes have graphs of different forms.
std::optional<SymbolicGraph> open_graph(const Graph& two, const GraphFor& graph_for) {
  const Graph three = graph_for(3);
  auto open = generalize({two, 2}, {three, 3}, engine::kBatchSymbol);
  if (!open || open->symbols() != std::set<std::string>{engine::kBatchSymbol}) return std::nullopt;
  for (const int64_t batch : {int64_t{5}, kLargeBatch})
    if (print_graph(bind_symbols(*open, {{engine::kBatchSymbol, batch}})) != print_graph(graph_for(batch)))
      return std::nullopt;
  if (!gives_the_same_for_one(*open, graph_for)) return std::nullopt;
  return open;
}

/// False where sizes have graphs of different forms.
bool add_open_graph(DeployedModel& model, const GraphFor& graph_for) {
  const Graph two = graph_for(2);
  const auto open = open_graph(two, graph_for);
  if (!open) return false;
  set_ports(model, *open);
  model.graphs.push_back({0, print_symbolic_graph(*open)});
  add_constants(model, two);
  return true;
}

/// Batch norms become part of the convolutions before them here, once: an engine would hold the weights of both forms
/// for a while. A graph without them stays as it is: what becomes integers later must not have other forms by then.
GraphFor with_folded_norms(const GraphFor& graph_for) {
  return [graph_for, folded = std::make_shared<passes::FoldedWeights>()](int64_t batch) {
    Graph graph = graph_for(batch);
    const bool has_norms = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                       [](const Node& node) { return node.op->name == "batch_norm_inference"; });
    if (!has_norms) return graph;
    return passes::eliminate_dead_code(passes::fold_batch_norm(passes::fuse_bias(graph), folded.get()));
  };
}

void add_graphs(DeployedModel& model, const GraphFor& unfolded, const CompileModelOptions& options) {
  const GraphFor graph_for = with_folded_norms(unfolded);
  if (options.batches.empty() && add_open_graph(model, graph_for)) return;
  const std::vector<int64_t>& batches = options.batches.empty() ? options.otherwise_batches : options.batches;
  if (batches.empty())
    fail(ErrorKind::usage,
         "the graph of '{}' has another form for each size of the batch; say which size you need, such as --batch 16",
         model.name);
  for (const int64_t batch : batches) {
    const Graph graph = graph_for(batch);
    add_constants(model, graph);
    const std::string text = print_graph(graph);
    if (model.graphs.empty()) set_ports(model, parse_symbolic_graph(text, graph.registry(), model.constants));
    model.graphs.push_back({batch, text});
  }
}

/// Of the first input, where it can be pictures: f32[N,C,H,W]; nullopt elsewhere and where nothing is known of pixels.
/// What only the metadata of a file say of pixels, with `file` its name, is nothing to refuse the model for where it
/// reads no pictures.
std::optional<PictureInput> pictures_of(const DeployedModel& model, const CompileModelOptions& options,
                                        const std::string& file = {}) {
  if (options.mean.empty() && options.deviation.empty()) return std::nullopt;
  const std::string type = model.inputs.empty() ? "" : model.inputs[0].type;
  std::vector<Expression> dims;
  if (type.starts_with("f32[")) dims = parse_expressions(type.substr(4, type.size() - 5));
  const bool are_pictures = dims.size() == 4 && dims[1].constant() && dims[2].constant() && dims[3].constant();
  if (!are_pictures && !file.empty()) return std::nullopt;
  if (!are_pictures)
    fail(ErrorKind::usage, "'{}' reads {}, which are no pictures f32[N,C,H,W]; leave --mean and --deviation away",
         model.name, type.empty() ? "nothing" : type);
  PictureInput pictures{.channels = *dims[1].constant(),
                        .height = *dims[2].constant(),
                        .width = *dims[3].constant(),
                        .resize = options.resize,
                        .decodes_exactly = options.decodes_exactly,
                        .mean = options.mean,
                        .deviation = options.deviation};
  check(pictures, file.empty() ? "--mean, --deviation and --resize"
                               : fmt::format("the metadata of '{}' (--mean and --deviation take their place)", file));
  return pictures;
}

/// Options that would change nothing are mistakes.
void refuse_what_has_no_effect(const DeployedModel& model, const CompileModelOptions& options, bool is_onnx) {
  if (!options.sizes.empty() && !is_onnx)
    fail(ErrorKind::usage, "--bind {}: it binds dimensions of ONNX files, and '{}' is none; leave it away",
         options.sizes.begin()->first, model.name);
  const bool uses_resize = !options.mean.empty() && model.pictures;
  if (options.resize > 0 && !uses_resize)
    fail(ErrorKind::usage,
         "--resize {} has no effect without --mean and --deviation: '{}' prepares pictures as it says itself, if any; "
         "give them or leave it away",
         options.resize, model.name);
}

DeployedModel described(const std::string& name, const CompileModelOptions& options) {
  DeployedModel model;
  model.name = name;
  model.precision = options.precision;
  model.classes = options.classes;
  model.metadata = {{"weft", std::string(version())}, {"licence", options.licence}, {"source", options.source}};
  std::erase_if(model.metadata, [](const auto& entry) { return entry.second.empty(); });
  return model;
}

}  // namespace

DeployedModel compile_run(const Library& library, const run::LoadedRun& run, const CompileModelOptions& options) {
  std::map<std::string, Constant> values;
  for (const std::string& name : run.state.names()) values.emplace(name, Constant(run.state.plain_view(name)));
  DeployedModel model = described(run.spec.model.name, options);
  for (const auto& [key, text] : run::weights_metadata(run.spec, run.data))
    if (key != "format" && key != "data") model.metadata.emplace(key, text);
  if (model.classes.empty()) model.classes = run.data.info.class_names;
  add_graphs(
      model,
      [&](int64_t batch) {
        return with_constants(
            step::build_prediction_step(library, run.spec, program::model_input(run.data, spec::StepShape(batch))),
            values);
      },
      options);
  model.pictures = options.mean.empty() ? run_pictures(run.data) : pictures_of(model, options);
  refuse_what_has_no_effect(model, options, false);
  return model;
}

DeployedModel compile_zoo_model(const Library& library, const std::string& name, uint64_t seed,
                                const CompileModelOptions& options) {
  models::ModelInput input = models::find_model(library.models, name).default_input;
  std::map<std::string, Constant> values;
  for (const models::ParameterSpec& parameter :
       build_model(library, name, input, {}, models::Mode::inference).parameters)
    values.emplace(parameter.name, Constant(models::initialize(parameter, seed)));
  DeployedModel model = described(name, options);
  model.metadata.emplace("model", name);
  spec::RunSpec spec;
  spec.model.name = name;
  add_graphs(
      model,
      [&](int64_t batch) {
        input.batch = batch;
        return with_constants(step::build_prediction_step(library, spec, input), values);
      },
      options);
  model.pictures = pictures_of(model, options);
  refuse_what_has_no_effect(model, options, false);
  return model;
}

namespace {

/// What weft wrote into the metadata of an ONNX model, where the options leave it open.
CompileModelOptions with_metadata(CompileModelOptions options, const std::map<std::string, std::string>& metadata) {
  const auto text = [&](const char* key) {
    const auto found = metadata.find(key);
    return found == metadata.end() ? std::string() : found->second;
  };
  if (options.mean.empty() && options.deviation.empty()) {
    options.mean = parse_number_list<float>(text("mean")).value_or(std::vector<float>{});
    options.deviation = parse_number_list<float>(text("deviation")).value_or(std::vector<float>{});
    const auto resize = parse_number_list<int64_t>(text(kResizeMetadata)).value_or(std::vector<int64_t>{});
    if (options.resize == 0 && resize.size() == 1) options.resize = resize.front();
    options.decodes_exactly = text(kDecodeMetadata) != "scaled";
  }
  const auto names = nlohmann::json::parse(text("class_names"), nullptr, /*allow_exceptions=*/false);
  if (options.classes.empty() && names.is_array())
    for (const auto& name : names)
      if (name.is_string()) options.classes.push_back(name.get<std::string>());
  return options;
}

}  // namespace

DeployedModel compile_onnx(const Library& library, onnx::Model model, const CompileModelOptions& given) {
  CompileModelOptions options = with_metadata(given, model.metadata);
  const std::map<std::string, std::string> metadata = model.metadata;
  const std::string path = model.path, name = std::filesystem::path(path).stem().string();
  const OnnxGraphs graphs(library, std::move(model), options.sizes);
  if (const auto fixed = graphs.fixed_batch()) {
    for (const int64_t batch : options.batches)
      if (batch != *fixed)
        fail(ErrorKind::usage,
             "--batch {}: '{}' is for a batch of {} alone; leave --batch away, or export it with an open batch", batch,
             name, *fixed);
    options.batches = {*fixed};
  }
  DeployedModel deployed = described(name, options);
  for (const auto& [key, value] : metadata) deployed.metadata.emplace(key, value);
  const auto device = library.device.make({.threads = 1, .kernels = library.kernels});
  add_graphs(
      deployed,
      [&](int64_t batch) {
        Graph graph = graphs.graph_for(batch);
        return options.requantizes_fixed ? with_fixed_integers(graph, *device) : graph;
      },
      options);
  // A model may prepare its pictures itself.
  const bool reads_reals = !deployed.inputs.empty() && deployed.inputs[0].type.starts_with("f32[");
  const std::string file = given.mean.empty() ? path : "";
  if (reads_reals || !given.mean.empty()) deployed.pictures = pictures_of(deployed, options, file);
  options.resize = given.resize;  // what metadata say is nobody's mistake
  refuse_what_has_no_effect(deployed, options, true);
  return deployed;
}

}  // namespace weft::deploy
