#include "weft/simulate/transformer_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "weft/base/error.h"
#include "weft/simulate/pipeline_order.h"

namespace weft::simulate {

namespace {

using passes::PipelineSlot;
using passes::PipelineWork;

constexpr double kMostTasks = 2e7;  // some ten seconds, and some gigabytes

/// Layers of each chunk of each stage: as even as they go; first the last one, then the first has fewer.
std::vector<std::vector<int64_t>> divide_layers(int64_t layers, const passes::StagePlacement& placement) {
  const int64_t parts = placement.stages(), most = (layers + parts - 1) / parts;
  std::vector<int64_t> all(static_cast<size_t>(parts), most);
  for (int64_t fewer = most * parts - layers, at = 0; fewer > 0; --fewer, ++at)
    --all[static_cast<size_t>(at == 0 ? parts - 1 : at == 1 ? 0 : parts - at)];
  std::vector<std::vector<int64_t>> divided(static_cast<size_t>(placement.ranks));
  for (int chunk = 0; chunk < placement.chunks; ++chunk)
    for (int stage = 0; stage < placement.ranks; ++stage)
      divided[static_cast<size_t>(stage)].push_back(all[static_cast<size_t>(placement.stage_of(stage, chunk))]);
  return divided;
}

class Simulation {
 public:
  Simulation(const TransformerShape& shape, const Strategy& strategy, const machines::ClusterFile& cluster,
             const machines::Calibration& calibration, double factor)
      : shape_(shape),
        t_(strategy),
        cluster_(cluster),
        factor_(factor),
        stages_(strategy.pipeline),
        placement_(placement_of(strategy.schedule, strategy.pipeline, strategy.chunks)) {
    layer_ = scaled(layer_cost(shape, strategy, cluster, calibration));
    first_ = scaled(first_cost(shape, strategy, cluster, calibration));
    last_ = scaled(last_cost(shape, strategy, cluster, calibration));
    if (strategy.tensor > 1 && shape.heads % strategy.tensor != 0)
      fail(ErrorKind::usage, "--strategy: tensor={} does not divide the {} heads", strategy.tensor, shape.heads);
    // The first and the last part may have none: the embedding and the logits are there.
    if (shape.layers < std::max<int64_t>(1, int64_t{stages_} * strategy.chunks - 2))
      fail(ErrorKind::usage, "--strategy: {} stages of {} chunks are more than the {} layers", stages_, strategy.chunks,
           shape.layers);
    layers_ = divide_layers(shape.layers, placement_);
    micro_batches_ = static_cast<int>(strategy.micro_batches());
    gathers_each_ = stages_ == 1 && strategy.zero >= 3;
    require_few_tasks();
    set_messages();
  }

  TransformerStep run() {
    for (int stage = 0; stage < stages_; ++stage) {
      compute_.push_back(graph_.add_stream(fmt::format("stage {}: compute", stage)));
      exchange_.push_back(graph_.add_stream(fmt::format("stage {}: gradients", stage)));
      gathers_.push_back(graph_.add_stream(fmt::format("stage {}: weights", stage)));
      links_.push_back(graph_.add_link(fmt::format("stage {}: network", stage), 1));
    }
    const double stage_layers = static_cast<double>(shape_.layers) / stages_ / t_.chunks;
    const auto order = pipeline_order(t_.schedule, stages_, micro_batches_, t_.chunks, stage_layers * layer_.forward,
                                      stage_layers * (layer_.backward_input + (splits() ? 0 : layer_.backward_weight)),
                                      stage_layers * layer_.backward_weight);
    for (int stage = 0; stage < stages_; ++stage) add_stage(stage, order[static_cast<size_t>(stage)]);
    connect();
    result_.spans = graph_.run();
    result_.seconds = splits() ? longest_stage() : end_of(result_.spans);
    for (const int stream : compute_)
      result_.busy_seconds = std::max(result_.busy_seconds, busy_seconds(graph_, result_.spans, stream));
    for (const double seconds : graph_.link_busy_seconds())
      result_.exchange_seconds = std::max(result_.exchange_seconds, seconds);
    const double per_sample = static_cast<double>(shape_.layers) * layer_.flops + last_.flops;
    result_.flops = per_sample * t_.tensor * t_.context * t_.data * micro_batches_;
    result_.tensor_seconds =
        micro_batches_ * (static_cast<double>(shape_.layers) / stages_ * layer_.tensor_seconds + last_.tensor_seconds);
    result_.memory = memory_of(shape_, t_);
    result_.tasks = std::move(graph_);
    return std::move(result_);
  }

 private:
  /// Where stages need not agree before they update, each begins its next step as soon as it is done with this one (Qi
  /// et al. 2023, section 4): what a step takes is what the stage takes that is longest at it.
  double longest_stage() const {
    double longest = 0;
    for (const int stream : compute_) {
      double begin = end_of(result_.spans), end = 0;
      for (size_t index = 0; index < result_.spans.size(); ++index) {
        if (graph_.tasks()[index].stream != stream) continue;
        begin = std::min(begin, result_.spans[index].begin);
        end = std::max(end, result_.spans[index].end);
      }
      longest = std::max(longest, end - begin);
    }
    return longest;
  }

  using Key = std::tuple<int, int, int>;  // stage, chunk, micro-batch

  void require_few_tasks() const {
    const double of_micro_batch = 6.0 * placement_.stages() + (gathers_each_ ? 5.0 * shape_.layers : 0);
    if (of_micro_batch * micro_batches_ <= kMostTasks) return;
    fail(ErrorKind::usage,
         "a step of {} micro-batches, {} stages and {} layers is too long to simulate; choose a larger micro-batch in "
         "--strategy, or a smaller --batch",
         micro_batches_, stages_, shape_.layers);
  }

  LayerCost scaled(LayerCost cost) const {
    for (double* seconds : {&cost.forward, &cost.backward_input, &cost.backward_weight, &cost.tensor_seconds})
      *seconds *= factor_;
    return cost;
  }

  bool splits() const { return splits_backward(t_.schedule); }
  bool is_last(int stage, int chunk) const { return placement_.stage_of(stage, chunk) == placement_.stages() - 1; }
  bool is_first(int stage, int chunk) const { return placement_.stage_of(stage, chunk) == 0; }
  bool has_first(int stage) const { return stage == placement_.rank_of(0); }
  bool has_last(int stage) const { return stage == placement_.rank_of(placement_.stages() - 1); }

  /// What the strategy exchanges, per layer of a stage: along the data axis, whose ranks lie `tensor x context` apart.
  void set_messages() {
    const auto stored = static_cast<double>(machines::bytes_of(t_.stored));
    const double parameters = shape_.layer_parameters() / t_.tensor;
    const int sharers = t_.data * t_.context / t_.replicas;  // gradients are summed over the context axis too
    const int own = std::max(1, cluster_.devices_per_host / t_.tensor);
    const GroupShape group{.size = sharers,
                           .per_host = std::min(own, sharers),
                           .groups_per_host = std::max(1, cluster_.devices_per_host / std::min(own, sharers))};
    const GroupShape all{
        .size = t_.data * t_.context,
        .per_host = std::min(own, t_.data * t_.context),
        .groups_per_host = std::max(1, cluster_.devices_per_host / std::min(own, t_.data * t_.context))};
    const auto cost = [&](Collective kind, double bytes, const GroupShape& of) {
      return of.size > 1 ? cost_of(kind, bytes, of, cluster_) : CollectiveCost{};
    };
    const double gradients = parameters * t_.gradient_bytes, weights = parameters * stored;
    if (t_.zero == 0)
      gradient_ = cost(Collective::all_reduce, gradients, all);
    else
      gradient_ = cost(Collective::reduce_scatter, gradients, group);
    if (t_.zero >= 1) weights_ = cost(Collective::all_gather, weights, group);
    // Replicas that share nothing sum what each of them has of the parts.
    if (t_.zero >= 1 && t_.replicas > 1) {
      const GroupShape others{.size = t_.replicas, .per_host = 1, .groups_per_host = cluster_.devices_per_host};
      replica_seconds_ = cost(Collective::all_reduce, gradients / sharers, others).seconds();
    }
    // The embedding counts as so many layers.
    table_layers_ = static_cast<double>(shape_.vocabulary * shape_.hidden) / shape_.layer_parameters();
    const double at_once = static_cast<double>(t_.micro_batch * shape_.sequence) / t_.context *
                           static_cast<double>(shape_.hidden) * stored;
    // Devices of a host that have the same send a part of it each (Narayanan et al. 2021, 4.1).
    message_bytes_ = at_once / t_.tensor;
    if (stages_ > 1) {
      message_seconds_ = seconds_between_stages(message_bytes_);
      if (t_.tensor > 1 && !t_.sequence_parallel)
        message_seconds_ +=
            cost_of(Collective::all_gather, at_once,
                    {.size = t_.tensor, .per_host = std::min(t_.tensor, cluster_.devices_per_host)}, cluster_)
                .seconds();
      if (!t_.overlaps_messages) waiting_seconds_ = message_seconds_;
    }
  }

  int devices_of_stage() const { return t_.tensor * t_.context * t_.data; }
  /// Devices of a host whose messages to another stage go at the same time.
  int senders_of_host() const { return std::min(devices_of_stage(), cluster_.devices_per_host); }
  int host_of(int stage) const { return stage * devices_of_stage() / cluster_.devices_per_host; }

  /// Each device of a stage sends so much to its like in another. Where stages lie on several hosts, all of them keep
  /// the pace of those whose messages leave theirs.
  double seconds_between_stages(double bytes) const {
    const bool leaves = devices_of_stage() * stages_ > cluster_.devices_per_host;
    return message_cost(bytes, leaves, senders_of_host(), cluster_).seconds();
  }
  void count_sent(int from_stage, int to_stage, double bytes) {
    if (host_of(from_stage) == host_of(to_stage)) return;
    double& sent = sent_by_host_[host_of(from_stage)];
    sent += bytes * senders_of_host();
    result_.pipeline_bytes = std::max(result_.pipeline_bytes, sent);
  }

  /// Weights of a layer, as other ranks of the data axis have parts of them.
  int32_t gather(int stage, double layers, const std::string& name) {
    const double seconds = layers * (weights_.seconds() - weights_.latency_seconds);
    result_.exchanged_bytes += stage == 0 ? layers * weights_.host_bytes : 0;
    return graph_.add({.name = name,
                       .kind = "weights",
                       .stream = gathers_[static_cast<size_t>(stage)],
                       .seconds = weights_.latency_seconds,
                       .demands = {{links_[static_cast<size_t>(stage)], seconds}}});
  }
  void reduce(int stage, double layers, const std::string& name, int32_t after) {
    const double seconds = layers * (gradient_.seconds() - gradient_.latency_seconds + replica_seconds_);
    result_.exchanged_bytes += stage == 0 ? layers * gradient_.host_bytes : 0;
    std::vector<int32_t> earlier;
    if (after >= 0) earlier.push_back(after);
    last_exchange_[static_cast<size_t>(stage)] = graph_.add({.name = name,
                                                             .kind = "gradients",
                                                             .stream = exchange_[static_cast<size_t>(stage)],
                                                             .seconds = gradient_.latency_seconds,
                                                             .demands = {{links_[static_cast<size_t>(stage)], seconds}},
                                                             .after = std::move(earlier)});
  }

  int32_t compute(int stage, std::string name, const char* kind, double seconds, std::vector<int32_t> after = {}) {
    return graph_.add({.name = std::move(name),
                       .kind = kind,
                       .stream = compute_[static_cast<size_t>(stage)],
                       .seconds = seconds,
                       .after = std::move(after)});
  }

  bool exchanges() const { return t_.data * t_.context > 1; }

  void add_stage(int stage, const std::vector<PipelineSlot>& steps) {
    last_exchange_.resize(static_cast<size_t>(stages_), -1);
    // Weights that the update left in parts are gathered before the first micro-batch, layer by layer where they may
    // overlap with it, else behind the update.
    if (exchanges() && t_.zero >= 1 && !gathers_each_ && t_.overlaps_gradients)
      for (int chunk = 0; chunk < t_.chunks; ++chunk) first_weights_[{stage, chunk}] = gather_all(stage, chunk);
    const PipelineSlot* last_weights = nullptr;
    for (const PipelineSlot& step : steps)
      if (step.work == (splits() ? PipelineWork::backward_weights : PipelineWork::backward)) last_weights = &step;
    for (const PipelineSlot& step : steps) add_step(stage, step, &step == last_weights);
    add_update(stage);
  }

  std::vector<int32_t> gather_all(int stage, int chunk) {
    const int64_t layers = layers_[static_cast<size_t>(stage)][static_cast<size_t>(chunk)];
    std::vector<int32_t> tasks;
    for (int64_t layer = 0; layer < layers; ++layer)
      tasks.push_back(gather(stage, 1, fmt::format("weights of layer {}", layer)));
    return tasks;
  }

  void add_step(int stage, const PipelineSlot& step, bool is_last_of_stage) {
    const int64_t layers = layers_[static_cast<size_t>(stage)][static_cast<size_t>(step.chunk)];
    const Key key{stage, step.chunk, step.micro_batch};
    if (step.work == PipelineWork::forward)
      forward(stage, step, layers, key);
    else
      backward(stage, step, layers, key, is_last_of_stage);
  }

  void forward(int stage, const PipelineSlot& step, int64_t layers, const Key& key) {
    const double before = is_first(stage, step.chunk) ? first_.forward : 0,
                 behind = is_last(stage, step.chunk) ? last_.forward : 0;
    const std::string name = fmt::format("forward {}", step.micro_batch);
    const auto weights = first_weights_.find({stage, step.chunk});
    const bool by_layer = gathers_each_ || (weights != first_weights_.end() && step.micro_batch == 0);
    if (!by_layer) {
      begins_[key] = ends_[key] = compute(
          stage, name, "forward", before + static_cast<double>(layers) * layer_.forward + behind + waiting_seconds_);
      return;
    }
    if (before > 0) begins_[key] = compute(stage, name + ", embedding", "forward", before);
    for (int64_t layer = 0; layer < layers; ++layer) {
      std::vector<int32_t> after;
      if (gathers_each_ && exchanges())
        after.push_back(gather_ahead(stage, fmt::format("weights of layer {}", layer)));
      else if (!gathers_each_)
        after.push_back(weights->second[static_cast<size_t>(layer)]);
      const int32_t task =
          compute(stage, fmt::format("{}, layer {}", name, layer), "forward", layer_.forward, std::move(after));
      remember(task);
      begins_.try_emplace(key, task);
      ends_[key] = task;
    }
    if (behind > 0) ends_[key] = compute(stage, name + ", logits", "forward", behind);
    if (waiting_seconds_ > 0) ends_[key] = compute(stage, name + ", message", "message", waiting_seconds_);
    if (!ends_.contains(key)) ends_[key] = compute(stage, name, "forward", 0);  // a chunk without layers
    begins_.try_emplace(key, ends_[key]);
  }

  /// A gather waits for the layer before the last: two layers' weights find room.
  int32_t gather_ahead(int stage, const std::string& name) {
    const int32_t task = gather(stage, 1, name);
    if (recent_.size() >= 2) graph_.wait_for(task, recent_[recent_.size() - 2]);
    return task;
  }
  void remember(int32_t task) { recent_.push_back(task); }

  void backward(int stage, const PipelineSlot& step, int64_t layers, const Key& key, bool is_last_of_stage) {
    const bool is_weights = step.work == PipelineWork::backward_weights;
    const auto part = [&](const LayerCost& cost) {
      if (is_weights) return cost.backward_weight;
      return cost.backward_input + (splits() ? 0 : cost.backward_weight);
    };
    const char* const kind = is_weights ? "weight gradients" : "backward";
    const std::string name = fmt::format("{} {}", kind, step.micro_batch);
    const double before = is_last(stage, step.chunk) ? part(last_) : 0,
                 behind = is_first(stage, step.chunk) ? part(first_) : 0;
    const bool by_layer = gathers_each_ || (is_last_of_stage && exchanges() && t_.overlaps_gradients);
    int32_t last = -1;
    if (!by_layer) {
      last =
          compute(stage, name, kind,
                  before + static_cast<double>(layers) * part(layer_) + behind + (is_weights ? 0 : waiting_seconds_));
      if (!is_weights) back_begins_[key] = back_ends_[key] = last;
    } else {
      if (before > 0) last = compute(stage, name + ", logits", kind, before);
      if (last >= 0 && !is_weights) back_begins_.try_emplace(key, last);
      if (before > 0) remember(last);
      for (int64_t layer = layers - 1; layer >= 0; --layer) {
        std::vector<int32_t> after;
        if (gathers_each_ && exchanges())
          after.push_back(gather_ahead(stage, fmt::format("weights of layer {}", layer)));
        last = compute(stage, fmt::format("{}, layer {}", name, layer), kind, part(layer_), std::move(after));
        remember(last);
        if (!is_weights) back_begins_.try_emplace(key, last), back_ends_[key] = last;
        if (exchanges() && (is_last_of_stage || (gathers_each_ && t_.zero >= 3)))
          reduce(stage, 1, fmt::format("gradients of layer {}", layer), last);
      }
      if (behind > 0) last = compute(stage, name + ", embedding", kind, behind);
      if (last < 0) last = compute(stage, name, kind, 0);
      if (!is_weights) back_begins_.try_emplace(key, last), back_ends_.try_emplace(key, last);
    }
    if (!is_last_of_stage || !exchanges()) return;
    // What is left: other chunks' layers, or all of them, and the embedding.
    double others = shape_.tables_of_stage(has_first(stage), has_last(stage)) * table_layers_;
    for (int chunk = 0; chunk < t_.chunks; ++chunk)
      if (!by_layer || chunk != step.chunk)
        others += static_cast<double>(layers_[static_cast<size_t>(stage)][static_cast<size_t>(chunk)]);
    if (others > 0) reduce(stage, others, "other gradients", last);
  }

  void add_update(int stage) {
    double layers = 0;
    for (const int64_t of_chunk : layers_[static_cast<size_t>(stage)]) layers += static_cast<double>(of_chunk);
    layers += shape_.tables_of_stage(has_first(stage), has_last(stage)) * table_layers_;
    const double own = layers * shape_.layer_parameters() / t_.tensor / (t_.zero >= 1 ? t_.data / t_.replicas : 1);
    // Adam: gradients read twice, for their norm and the update; two slots and the master read and written; weights
    // written (and read, where they are their own master).
    const double bytes = own * (2 * t_.gradient_bytes + 24 + static_cast<double>(machines::bytes_of(t_.stored)));
    const double seconds = factor_ * machines::seconds_of({machines::WorkClass::memory, 0, bytes}, *cluster_.device);
    std::vector<int32_t> after;
    if (last_exchange_[static_cast<size_t>(stage)] >= 0) after.push_back(last_exchange_[static_cast<size_t>(stage)]);
    const int32_t update = compute(stage, "update", "update", seconds, std::move(after));
    result_.update_seconds = std::max(result_.update_seconds, seconds);
    updates_.push_back(update);
    if (exchanges() && t_.zero >= 1 && !gathers_each_ && !t_.overlaps_gradients)
      graph_.wait_for(gather(stage, layers, "weights"), update);
  }

  /// Messages between stages, and between their chunks.
  void connect() {
    for (auto& [key, begin] : begins_) {
      const auto [stage, chunk, micro_batch] = key;
      if (is_first(stage, chunk)) continue;
      send(from_part(ends_, placement_.stage_of(stage, chunk) - 1, micro_batch), begin, stage);
    }
    for (auto& [key, begin] : back_begins_) {
      const auto [stage, chunk, micro_batch] = key;
      if (is_last(stage, chunk)) {
        graph_.wait_for(begin, ends_.at(key));
        continue;
      }
      send(from_part(back_ends_, placement_.stage_of(stage, chunk) + 1, micro_batch), begin, stage);
    }
    // The first and the last stage have the same table: the sum of both gradients.
    if (!has_last(placement_.rank_of(0)) && shape_.tied) {
      const double bytes = static_cast<double>(shape_.vocabulary * shape_.hidden) / t_.tensor * t_.gradient_bytes;
      const double seconds = 2 * seconds_between_stages(bytes);
      count_sent(0, stages_ - 1, bytes);
      count_sent(stages_ - 1, 0, bytes);
      const int32_t task = graph_.add({.name = "gradients of the embedding", .kind = "gradients", .seconds = seconds});
      for (const int32_t earlier : {last_exchange_.front(), last_exchange_.back()})
        if (earlier >= 0) graph_.wait_for(task, earlier);
      graph_.wait_for(task, back_ends_.at({0, 0, micro_batches_ - 1}));
      graph_.wait_for(updates_.front(), task);
      graph_.wait_for(updates_.back(), task);
    }
  }

  /// What a part of the layers has computed, and the stage that it lies on.
  struct Computed {
    int32_t task = -1;
    int stage = 0;
  };
  Computed from_part(const std::map<Key, int32_t>& ends, int part, int micro_batch) const {
    const int stage = placement_.rank_of(part);
    return {ends.at({stage, placement_.chunk_of(part), micro_batch}), stage};
  }

  /// Neither a stage nor its link waits for others' messages: adapters carry them both ways at once.
  void send(const Computed& from, int32_t to, int stage) {
    if (from.stage == stage) {
      graph_.wait_for(to, from.task);
      return;
    }
    const int32_t message =
        graph_.add({.name = "activations", .kind = "message", .seconds = message_seconds_ - waiting_seconds_});
    count_sent(from.stage, stage, message_bytes_);
    graph_.wait_for(message, from.task);
    graph_.wait_for(to, message);
  }

  const TransformerShape& shape_;
  const Strategy& t_;
  const machines::ClusterFile& cluster_;
  const double factor_;
  const int stages_;
  const passes::StagePlacement placement_;  // of chunks of the layers on stages
  LayerCost layer_, first_, last_;
  std::vector<std::vector<int64_t>> layers_;
  int micro_batches_ = 1;
  bool gathers_each_ = false;  // weights, for each micro-batch
  CollectiveCost gradient_, weights_;
  double replica_seconds_ = 0, message_seconds_ = 0, message_bytes_ = 0, waiting_seconds_ = 0, table_layers_ = 0;
  std::map<int, double> sent_by_host_;  // between stages
  TaskGraph graph_;
  TransformerStep result_;
  /// A stage's part of the network: a second of it is what exchanges take when nothing else is under way.
  std::vector<int> links_;
  std::vector<int> compute_, exchange_, gathers_;
  std::vector<int32_t> last_exchange_, recent_, updates_;
  std::map<std::pair<int, int>, std::vector<int32_t>> first_weights_;
  std::map<Key, int32_t> begins_, ends_, back_begins_, back_ends_;
};

}  // namespace

TransformerStep simulate_transformer(const TransformerShape& shape, const Strategy& strategy,
                                     const machines::ClusterFile& cluster, const machines::Calibration& calibration,
                                     double factor) {
  const TransformerShape completed = shape.completed();
  return Simulation(completed, strategy, cluster, calibration, factor).run();
}

}  // namespace weft::simulate
