#include "benchmarks/kernel_pairs.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "weft/base/rng.h"
#include "weft/base/table.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/passes/pipeline.h"
#include "weft/runtime/interpret.h"
#include "weft/step/step.h"

namespace weft::benchmarks {

namespace {

constexpr int kPairs = 15;

struct Workload {
  std::string model;
  models::ModelInput input;
  std::string only;  // ops whose names start so
};
std::vector<Workload> workloads() {
  std::vector<Workload> all;
  const auto add = [&](const char* model, int64_t batch, std::vector<int64_t> shape, int64_t classes,
                       const char* only) {
    Workload& workload = all.emplace_back();
    workload.model = model;
    workload.input.batch = batch;
    workload.input.shape = std::move(shape);
    workload.input.classes = classes;
    workload.only = only;
  };
  add("resnet50", 16, {3, 128, 128}, 1000, "");
  add("resnet9", 256, {1, 28, 28}, 10, "");
  add("transformer_lm", 16, {128}, 256, "");
  add("densenet121", 16, {3, 128, 128}, 1000, "avg_pool");
  return all;
}

struct Occurrence {
  NodeSignature node;
  int count = 0;  // in all the graphs
};

/// The nodes of a graph that both families have kernels for, equal ones together.
void collect(const Graph& graph, const std::string& only, const CpuBackend& backend, std::vector<Occurrence>& found) {
  for (int32_t index = 0; index < static_cast<int32_t>(graph.nodes().size()); ++index) {
    const NodeSignature node = signature_of(graph, {index});
    if (!node.op->name.starts_with(only)) continue;
    const auto& candidates = backend.table().candidates(node.op->name);
    const auto has = [&](const char* family) {
      return std::any_of(candidates.begin(), candidates.end(), [&](const auto& c) { return c.family == family; });
    };
    if (!has("native") || !has("onednn")) continue;
    const auto same = std::find_if(found.begin(), found.end(), [&](const Occurrence& other) {
      return other.node.op == node.op && other.node.inputs == node.inputs && other.node.outputs == node.outputs &&
             other.node.attributes == node.attributes;
    });
    if (same == found.end())
      found.push_back({node, 1});
    else
      ++same->count;
  }
}

/// Steps as they run and, since fusion leaves few simple nodes, as they are before it.
std::vector<Occurrence> nodes_of(const Library& library, const Workload& workload, const CpuBackend& backend) {
  spec::RunSpec spec;
  spec.model.name = workload.model;
  spec.batch = workload.input.batch;
  spec::resolve(spec);
  std::vector<Occurrence> found;
  for (const Graph& step : {step::build_training_step(library, spec, workload.input).graph,
                            step::build_prediction_step(library, spec, workload.input)})
    for (const std::vector<std::string>& left_out :
         {std::vector<std::string>{}, std::vector<std::string>{"fuse_batch_norm", "fuse_elementwise"}})
      collect(passes::run_pipeline(step, {backend}, {.disabled = left_out, .stop_after = {}, .on_graph = {}}),
              workload.only, backend, found);
  return found;
}

/// Numbers in [-1, 1); variances and the like are positive, and the maxima belong to their image.
std::vector<Tensor> draw_inputs(const NodeSignature& node, const OpRegistry& registry) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const TensorType& type = node.inputs[i];
    const std::string name = i < node.op->inputs.size() ? node.op->inputs[i] : "";
    const bool positive = name.starts_with("variance") || name == "inverse_std" || node.op->name == "log" ||
                          node.op->name == "sqrt" || (node.op->name == "divide" && i == 1);
    Tensor plain(type.dtype, type.shape);
    RandomStream stream(i + 1);
    for (int64_t at = 0; type.dtype == DType::f32 && at < plain.elements(); ++at)
      plain.data_as<float>()[at] = positive ? 0.5f + stream.uniform() : 2 * stream.uniform() - 1;
    inputs.push_back(plain.with_layout(type.layout));
  }
  if (node.op->name == "max_pool2d_backward")
    inputs[2] = evaluate_node({&registry.get("max_pool2d"), "", {node.inputs[1]}, {node.inputs[2]}, node.attributes},
                              {inputs[1]}, CpuBackend(1))[0];
  return inputs;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Wall time, and the time of all threads on a core, which does not count what other programs take away.
struct Seconds {
  double wall, cpu;
};
Seconds now() {
  const auto read = [](clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  return {read(CLOCK_MONOTONIC), read(CLOCK_PROCESS_CPUTIME_ID)};
}

/// A kernel with operands of its own, ready to be called again and again.
struct Bench {
  std::unique_ptr<Kernel> kernel;
  std::vector<Tensor> outputs;
  std::vector<const void*> from;
  std::vector<void*> to;
  decltype(allocate_aligned(0)) workspace;

  Bench(std::unique_ptr<Kernel> made, const NodeSignature& node, const std::vector<Tensor>& inputs)
      : kernel(std::move(made)),
        outputs(node.outputs.begin(), node.outputs.end()),
        workspace(allocate_aligned(std::max<int64_t>(64, kernel->workspace_bytes()))) {
    for (const Tensor& tensor : inputs) from.push_back(tensor.data());
    for (Tensor& tensor : outputs) to.push_back(tensor.data());
    kernel->run({from, to, workspace.get()});
  }
  /// One call after the caches were emptied, as nearly all operands of a step come from memory.
  Seconds time(std::vector<char>& sweep) {
    for (size_t at = 0; at < sweep.size(); at += 64) ++sweep[at];
    const Seconds begin = now();
    kernel->run({from, to, workspace.get()});
    const Seconds end = now();
    return {end.wall - begin.wall, end.cpu - begin.cpu};
  }
};

struct Pair {
  double native_seconds, onednn_seconds;  // wall, medians
  Seconds ratio;                          // medians of native / onednn over the pairs: above 1, oneDNN is faster
};

std::unique_ptr<Kernel> make(const CpuBackend& backend, const NodeSignature& node, const std::string& family,
                             std::string& why_not) {
  for (const KernelCandidate& candidate : backend.table().candidates(node.op->name))
    if (candidate.family == family) return candidate.make(node, {backend.threads()}, why_not);
  return nullptr;
}

Pair time_pair(Bench& native, Bench& onednn, std::vector<char>& sweep) {
  std::vector<double> natives, onednns, walls, cpus;
  for (int pair = 0; pair < kPairs; ++pair) {  // each goes first every other time
    Seconds mine{}, theirs{};
    if (pair % 2 == 0) mine = native.time(sweep);
    theirs = onednn.time(sweep);
    if (pair % 2 == 1) mine = native.time(sweep);
    natives.push_back(mine.wall);
    onednns.push_back(theirs.wall);
    walls.push_back(mine.wall / theirs.wall);
    cpus.push_back(mine.cpu / theirs.cpu);
  }
  return {median(natives), median(onednns), {median(walls), median(cpus)}};
}

struct Summary {
  int declined = 0;
  double native_seconds = 0, onednn_seconds = 0;  // each node as often as it occurs
  std::vector<double> walls, cpus;                // ratios
};

std::string describe(const NodeSignature& node) {
  std::string text = node.op->name;
  for (const TensorType& type : node.inputs) text += " " + to_string(type);
  return text;
}

}  // namespace

void compare_kernels(int threads, bool each_shape) {
  const Library library = standard_library();
  const CpuBackend backend(threads);
  std::vector<char> sweep(96 << 20);
  std::map<std::pair<std::string, std::string>, Summary> summaries;  // by op and model
  for (const Workload& workload : workloads())
    for (const Occurrence& occurrence : nodes_of(library, workload, backend)) {
      const NodeSignature& node = occurrence.node;
      Summary& summary = summaries[{node.op->name, workload.model}];
      std::string why_not;
      auto native = make(backend, node, "native", why_not), onednn = make(backend, node, "onednn", why_not);
      if (!native || !onednn) {
        ++summary.declined;
        if (each_shape) fmt::print("{} {}: {}\n", workload.model, describe(node), why_not);
        continue;
      }
      const std::string name = onednn->name();
      const std::vector<Tensor> inputs = draw_inputs(node, library.ops);
      Bench first(std::move(native), node, inputs), second(std::move(onednn), node, inputs);
      const Pair pair = time_pair(first, second, sweep);
      summary.native_seconds += pair.native_seconds * occurrence.count;
      summary.onednn_seconds += pair.onednn_seconds * occurrence.count;
      summary.walls.push_back(pair.ratio.wall);
      summary.cpus.push_back(pair.ratio.cpu);
      if (each_shape)
        fmt::print("{} {}: {:.3f} ms, {} {:.3f} ms, ratio {:.2f}, of core time {:.2f}\n", workload.model,
                   describe(node), pair.native_seconds * 1e3, name, pair.onednn_seconds * 1e3, pair.ratio.wall,
                   pair.ratio.cpu);
    }
  Table table({{"op"},
               {"model"},
               {"kinds", Align::right},
               {"declined", Align::right},
               {"native ms", Align::right},
               {"onednn ms", Align::right},
               {"ratio", Align::right},
               {"of core time", Align::right},
               {"lowest", Align::right},
               {"highest", Align::right}});
  for (auto& [key, summary] : summaries) {
    std::vector<std::string> row{key.first, key.second,
                                 std::to_string(summary.cpus.size() + static_cast<size_t>(summary.declined)),
                                 std::to_string(summary.declined)};
    if (!summary.cpus.empty()) {
      const auto [lowest, highest] = std::minmax_element(summary.cpus.begin(), summary.cpus.end());
      for (const double seconds : {summary.native_seconds, summary.onednn_seconds})
        row.push_back(fmt::format("{:.2f}", seconds * 1e3));
      for (const double ratio : {median(summary.walls), median(summary.cpus), *lowest, *highest})
        row.push_back(fmt::format("{:.2f}", ratio));
    }
    table.add_row(std::move(row));
  }
  fmt::print(
      "{} threads; medians of {} pairs; ratio: native / onednn, above 1 where oneDNN is faster; lowest and highest: of "
      "the "
      "core time, over the kinds of node\n{}",
      threads, kPairs, table.text());
}

}  // namespace weft::benchmarks
