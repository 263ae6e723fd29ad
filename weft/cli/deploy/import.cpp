// weft import: what an ONNX model is and takes, as weft sees it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/names.h"
#include "weft/base/table.h"
#include "weft/cli/command.h"
#include "weft/engine/onnx_session.h"
#include "weft/graph/expression.h"
#include "weft/models/model.h"
#include "weft/onnx/file/model_file.h"
#include "weft/onnx/lower/normalize.h"

namespace weft::cli {

namespace {

struct ImportOptions {
  std::string file;
  bool operators = false;
  std::vector<std::string> bind;
  int64_t threads = 0;
  bool json = false;
};

/// Zeros or empty texts of the shape that the model states; dimensions without a size are 1 where nobody binds them.
onnx::HostValue sample_of(const onnx::ValueInfo& info, const std::map<std::string, int64_t>& sizes) {
  std::vector<int64_t> shape;
  for (const onnx::Dimension& dimension : *info.shape) {
    const auto bound = sizes.find(dimension.symbol);
    shape.push_back(dimension.size ? *dimension.size : bound != sizes.end() ? bound->second : 1);
  }
  if (info.kind == onnx::ValueInfo::Kind::strings) {
    const auto count = static_cast<size_t>(Shape(shape).elements());
    return onnx::StringTensor{Shape(shape), std::vector<std::string>(count)};
  }
  return Tensor(info.dtype.value_or(DType::f32), Shape(shape));
}

/// What a plan wants to know of an input and the file does not say; empty: it says all.
std::string lacking(const onnx::ValueInfo& info) {
  if (info.kind == onnx::ValueInfo::Kind::sequence)
    return fmt::format("the input '{}' is a sequence, and what it holds decides the plan", info.name);
  if (info.shape) return {};
  return fmt::format(
      "the file does not say the rank of its input '{}' ({}); export it with the shapes of its inputs, or give numbers "
      "to `weft infer`",
      info.name, describe(info));
}

/// What is said of a model.
struct ModelSummary {
  std::vector<onnx::ValueInfo> inputs;
  int64_t parameters = 0, weight_bytes = 0;
  std::map<std::string, int64_t> counts;  // of operators
  std::vector<std::string> missing;       // operators that weft has not
  engine::PlanCost cost;                  // of all plans
  size_t segments = 0;                    // plans
  std::string refusal;                    // why it cannot be planned; empty: it can
};

/// What the file says, normalised.
ModelSummary describe_file(const onnx::Model& model) {
  ModelSummary description;
  for (const auto& [name, value] : model.graph.initializers)
    if (const Tensor* tensor = value.tensor()) {
      if (is_floating(tensor->dtype())) description.parameters += tensor->elements();
      description.weight_bytes += tensor->bytes();
    }
  for (const onnx::OnnxNode& node : model.graph.nodes)
    ++description.counts[node.domain.empty() ? node.op : node.domain + "." + node.op];
  for (const onnx::ValueInfo& info : model.graph.inputs)
    if (!model.graph.initializers.contains(info.name)) description.inputs.push_back(info);
  description.missing = onnx::missing_operators(model, onnx::standard_operators());
  return description;
}

/// What its plans take, for zeros of those sizes.
void add_plans(ModelSummary& description, const onnx::Model& model, const Library& library,
               const ImportOptions& options) {
  const int64_t threads = options.threads > 0 ? options.threads : available_cores();
  const auto device = library.device.make({.threads = static_cast<int>(threads), .kernels = library.kernels});
  engine::SessionOptions session_options;
  session_options.compile.threads = static_cast<int>(threads);
  session_options.on_plan = [&](const engine::PlanCost& plan) {
    engine::PlanCost& cost = description.cost;
    cost.seconds += plan.seconds;
    cost.arena_bytes = std::max(cost.arena_bytes, plan.arena_bytes);
    cost.constant_bytes += plan.constant_bytes;
    cost.nodes += plan.nodes;
    cost.multiply_adds += plan.multiply_adds;
    ++description.segments;
  };
  engine::OnnxSession session(model, library.ops, *device, session_options);
  const auto sizes = parse_bindings(options.bind);
  std::map<std::string, onnx::HostValue> samples;
  for (const onnx::ValueInfo& info : session.inputs()) {
    if (info.kind == onnx::ValueInfo::Kind::optional) continue;  // it is absent
    description.refusal = lacking(info);
    if (!description.refusal.empty()) return;
    samples[info.name] = sample_of(info, sizes);
  }
  try {
    session.prepare(samples);
  } catch (const Error& error) {
    description.refusal = error.what();
  }
}

void print_json(const ModelSummary& description, const onnx::Model& model, const std::string& file) {
  nlohmann::ordered_json json{{"file", file},
                              {"producer", model.producer},
                              {"ir_version", model.ir_version},
                              {"opset", model.opset()},
                              {"parameters", description.parameters},
                              {"weight_bytes", description.weight_bytes},
                              {"operators", description.counts},
                              {"missing", description.missing},
                              {"refused", description.refusal},
                              {"multiply_adds", description.cost.multiply_adds},
                              {"arena_bytes", description.cost.arena_bytes},
                              {"constant_bytes", description.cost.constant_bytes},
                              {"graphs", description.segments}};
  for (const auto& [list, key] : {std::pair{&description.inputs, "inputs"}, std::pair{&model.graph.outputs, "outputs"}})
    for (const onnx::ValueInfo& info : *list) json[key].push_back({{"name", info.name}, {"type", describe(info)}});
  fmt::print("{}\n", json.dump(2));
}

void print_table(const ModelSummary& description, const onnx::Model& model, const std::string& file) {
  Table table({{"what"}, {"of this model"}});
  table.add_row({"file", file});
  table.add_row({"made by", model.producer.empty() ? "-" : model.producer});
  table.add_row({"operators of ONNX", fmt::format("version {}", model.opset())});
  for (const onnx::ValueInfo& info : description.inputs) table.add_row({"input", info.name + ": " + describe(info)});
  for (const onnx::ValueInfo& info : model.graph.outputs) table.add_row({"output", info.name + ": " + describe(info)});
  std::string used;
  for (const auto& [op, count] : description.counts)
    used += fmt::format("{}{} {}", used.empty() ? "" : ", ", op, count);
  table.add_row({"nodes", used});
  table.add_row({"parameters", fmt::format("{} ({})", human_count(static_cast<double>(description.parameters)),
                                           human_bytes(static_cast<double>(description.weight_bytes)))});
  if (description.missing.empty() && description.refusal.empty()) {
    const engine::PlanCost& cost = description.cost;
    table.add_row({"multiply-adds", human_count(static_cast<double>(cost.multiply_adds))});
    table.add_row({"graphs", fmt::format("{} of {} nodes", description.segments, cost.nodes)});
    table.add_row({"memory by the plan",
                   fmt::format("{} for results, {} for constants", human_bytes(static_cast<double>(cost.arena_bytes)),
                               human_bytes(static_cast<double>(cost.constant_bytes)))});
  }
  fmt::print("{}", table.text());
}

/// Every name that is bound stands for an open dimension.
void check_bindings(const onnx::Model& model, const std::vector<std::string>& bind) {
  const std::vector<std::string> open = onnx::open_dimensions(model.graph);
  for (const auto& [name, size] : parse_bindings(bind))
    if (std::find(open.begin(), open.end(), name) == open.end())
      fail(ErrorKind::usage, "--bind {}={}: no input of '{}' has an open dimension of that name{}", name, size,
           model.path, open.empty() ? "; leave it away" : suggestion(name, open));
}

int import_command(const Library& library, const ImportOptions& options) {
  if (options.operators) {
    fmt::print("{}", onnx::operator_reference(onnx::standard_operators()));
    return 0;
  }
  if (options.file.empty()) fail(ErrorKind::usage, "name an ONNX file, or --operators for those that weft imports");
  const onnx::Model model = onnx::normalize(onnx::read_model(options.file));
  check_bindings(model, options.bind);
  ModelSummary description = describe_file(model);
  if (description.missing.empty()) add_plans(description, model, library, options);
  options.json ? print_json(description, model, options.file) : print_table(description, model, options.file);
  if (!description.missing.empty()) {
    std::string lines;
    for (const std::string& line : description.missing) lines += "\n  " + line;
    fail(ErrorKind::usage, "'{}' uses operators that weft has not, with the nodes that do:{}", options.file, lines);
  }
  if (!description.refusal.empty())
    fail(ErrorKind::usage, "'{}' cannot be planned: {}", options.file, description.refusal);
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
