// weft import: what an ONNX model is and takes, as weft sees it.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/table.h"
#include "weft/cli/command.h"
#include "weft/engine/onnx_session.h"
#include "weft/graph/expression.h"
#include "weft/models/model.h"
#include "weft/onnx/file/model_file.h"

namespace weft::cli {

namespace {

struct ImportOptions {
  std::string file;
  bool operators = false;
  std::vector<std::string> bind;
  int64_t threads = 0;
  bool json = false;
};

/// Zeros of the shape that the model states; dimensions without a size are 1 where nobody binds them.
onnx::HostValue sample_of(const onnx::ValueInfo& info, const std::map<std::string, int64_t>& sizes) {
  std::vector<int64_t> shape;
  if (info.shape)
    for (const onnx::Dimension& dimension : *info.shape) {
      const auto bound = sizes.find(dimension.symbol);
      shape.push_back(dimension.size ? *dimension.size : bound != sizes.end() ? bound->second : 1);
    }
  return Tensor(info.dtype.value_or(DType::f32), Shape(shape));
}

int import_command(const Library& library, const ImportOptions& options) {
  if (options.operators) {
    fmt::print("{}", onnx::operator_reference(onnx::standard_operators()));
    return 0;
  }
  if (options.file.empty()) fail(ErrorKind::usage, "name an ONNX file, or --operators for those that weft imports");
  onnx::Model model = onnx::read_model(options.file);
  int64_t parameters = 0, weight_bytes = 0;
  for (const auto& [name, value] : model.graph.initializers)
    if (const Tensor* tensor = value.tensor()) {
      if (is_floating(tensor->dtype())) parameters += tensor->elements();
      weight_bytes += tensor->bytes();
    }
  std::map<std::string, int64_t> counts;
  for (const onnx::OnnxNode& node : model.graph.nodes)
    ++counts[node.domain.empty() ? node.op : node.domain + "." + node.op];
  const int64_t threads = options.threads > 0 ? options.threads : available_cores();
  const auto device = library.device.make({.threads = static_cast<int>(threads), .kernels = library.kernels});
  const onnx::OperatorTable operators = onnx::standard_operators();
  const auto missing = onnx::missing_operators(model, operators);

  engine::PlanCost cost;
  int64_t multiply_adds = 0;
  size_t segments = 0;
  std::string refusal;
  const auto sizes = parse_bindings(options.bind);
  std::vector<onnx::ValueInfo> inputs;
  if (missing.empty()) {
    engine::SessionOptions session_options;
    session_options.compile.threads = static_cast<int>(threads);
    session_options.on_plan = [&](const engine::PlanCost& plan) {
      cost.seconds += plan.seconds;
      cost.arena_bytes = std::max(cost.arena_bytes, plan.arena_bytes);
      cost.constant_bytes += plan.constant_bytes;
      cost.nodes += plan.nodes;
      multiply_adds += plan.multiply_adds;
      ++segments;
    };
    engine::OnnxSession session(model, library.ops, *device, session_options);
    inputs = session.inputs();
    std::map<std::string, onnx::HostValue> samples;
    for (const onnx::ValueInfo& info : inputs) samples[info.name] = sample_of(info, sizes);
    try {
      session.prepare(samples);
    } catch (const Error& error) {
      refusal = error.what();
    }
  } else {
    for (const onnx::ValueInfo& info : model.graph.inputs)
      if (!model.graph.initializers.contains(info.name)) inputs.push_back(info);
  }

  if (options.json) {
    nlohmann::ordered_json json{{"file", options.file},
                                {"producer", model.producer},
                                {"ir_version", model.ir_version},
                                {"opset", model.opset()},
                                {"parameters", parameters},
                                {"weight_bytes", weight_bytes},
                                {"operators", counts},
                                {"missing", missing},
                                {"refused", refusal},
                                {"multiply_adds", multiply_adds},
                                {"arena_bytes", cost.arena_bytes},
                                {"constant_bytes", cost.constant_bytes},
                                {"graphs", segments}};
    for (const auto& [list, key] : {std::pair{&inputs, "inputs"}, std::pair{&model.graph.outputs, "outputs"}})
      for (const onnx::ValueInfo& info : *list) json[key].push_back({{"name", info.name}, {"type", describe(info)}});
    fmt::print("{}\n", json.dump(2));
  } else {
    Table table({{"what"}, {"of this model"}});
    table.add_row({"file", options.file});
    table.add_row({"made by", model.producer.empty() ? "-" : model.producer});
    table.add_row({"operators of ONNX", fmt::format("version {}", model.opset())});
    for (const onnx::ValueInfo& info : inputs) table.add_row({"input", info.name + ": " + describe(info)});
    for (const onnx::ValueInfo& info : model.graph.outputs)
      table.add_row({"output", info.name + ": " + describe(info)});
    std::string used;
    for (const auto& [op, count] : counts) used += fmt::format("{}{} {}", used.empty() ? "" : ", ", op, count);
    table.add_row({"nodes", used});
    table.add_row({"parameters", fmt::format("{} ({})", human_count(static_cast<double>(parameters)),
                                             human_bytes(static_cast<double>(weight_bytes)))});
    if (missing.empty() && refusal.empty()) {
      table.add_row({"multiply-adds", human_count(static_cast<double>(multiply_adds))});
      table.add_row({"graphs", fmt::format("{} of {} nodes", segments, cost.nodes)});
      table.add_row({"memory by the plan",
                     fmt::format("{} for results, {} for constants", human_bytes(static_cast<double>(cost.arena_bytes)),
                                 human_bytes(static_cast<double>(cost.constant_bytes)))});
    }
    fmt::print("{}", table.text());
  }
  if (!missing.empty()) {
    std::string lines;
    for (const std::string& line : missing) lines += "\n  " + line;
    fail(ErrorKind::usage, "'{}' uses operators that weft has not, with the nodes that do:{}", options.file, lines);
  }
  if (!refusal.empty()) fail(ErrorKind::usage, "'{}' cannot run: {}", options.file, refusal);
  return 0;
}

}  // namespace

void add_import(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* command =
      app.add_subcommand("import", "Show an ONNX model: what it reads and gives, its size, what it takes");
  command->add_option("FILE", options->file, "ONNX file")->type_name("FILE");
  command
      ->add_option("--bind", options->bind, "Size of a dimension that the model leaves open; 1 by default; repeatable")
      ->type_name("NAME=SIZE")
      ->allow_extra_args(false);
  command->add_option("--threads", options->threads, "Default: all cores this process may use")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--operators", options->operators,
                    "List the operators that weft imports; the host runs those with a star");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback(
      [options, &action, &library] { action = [options, &library] { return import_command(library, *options); }; });
}

}  // namespace weft::cli
