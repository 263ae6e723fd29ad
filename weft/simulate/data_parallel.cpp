#include "weft/simulate/data_parallel.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>

#include "weft/base/error.h"
#include "weft/base/rng.h"

namespace weft::simulate {

namespace {

bool are_alike(const StepCollective& a, const StepCollective& b) {
  return a.kind == b.kind && a.tensors == b.tensors && a.is_of_last_batch == b.is_of_last_batch;
}

/// The classes' steps, one after the other, as tasks.
class Builder {
 public:
  Builder(const std::vector<RankClass>& classes, const machines::ClusterFile& cluster, const StepOptions& options,
          SimulatedStep& result)
      : classes_(classes), options_(options), result_(result), graph_(result.tasks) {
    const GroupShape group = group_of_all(cluster, options.ranks);
    for (const StepCollective& collective : classes.front().program->collectives)
      result.collectives.push_back(cost_of(collective.kind, options.bytes_factor * collective.bytes, group, cluster));
    for (const RankClass& rank : classes) {
      check(std::ranges::equal(rank.program->collectives, classes.front().program->collectives, are_alike),
            "ranks with different collectives");
      streams_.push_back(graph_.add_stream(rank.name + ": compute"));
    }
    network_ = graph_.add_stream("network");
    add_links();
  }

  void run() {
    for (int step = 0; step < options_.steps; ++step) {
      for (int batch = 0; batch + 1 < options_.batches; ++batch) add_batch(step, /*is_last=*/false);
      add_batch(step, /*is_last=*/true);
    }
  }
  const std::vector<std::vector<int32_t>>& ends() const { return ends_; }
  int network() const { return network_; }

 private:
  void add_links() {
    for (const CollectiveCost& cost : result_.collectives) {
      if (cost.device_bytes > 0 && device_ < 0)
        device_ = graph_.add_link("links in a host", cost.device_bytes_per_second);
      if (cost.host_bytes > 0 && host_ < 0) host_ = graph_.add_link("links between hosts", cost.host_bytes_per_second);
      if (cost.uplink_bytes > 0 && uplink_ < 0) uplink_ = graph_.add_link("uplinks", cost.uplink_bytes_per_second);
    }
  }

  Task exchange(size_t number) const {
    const CollectiveCost& cost = result_.collectives[number];
    const StepCollective& collective = classes_.front().program->collectives[number];
    Task task{.name = collective.tensors,
              .kind = std::string(name_of(collective.kind)) + ", " + cost.algorithm,
              .stream = network_,
              .seconds = cost.latency_seconds};
    if (cost.device_bytes > 0) task.demands.push_back({device_, cost.device_bytes});
    if (cost.host_bytes > 0) task.demands.push_back({host_, cost.host_bytes});
    if (cost.uplink_bytes > 0) task.demands.push_back({uplink_, cost.uplink_bytes});
    return task;
  }

  /// A batch of a step, of which all but the last only add to sums.
  struct Batch {
    int step = 0;
    bool is_last = true;
    std::vector<std::vector<int32_t>> begun;  // per collective and class the task that begins it
    std::vector<int32_t> over;                // the collectives, in the order of the first class
  };

  void add_batch(int step, bool is_last) {
    const size_t count = result_.collectives.size();
    Batch batch{step, is_last, std::vector<std::vector<int32_t>>(count), std::vector<int32_t>(count, -1)};
    std::vector<size_t> cursor(classes_.size(), 0);
    if (is_last) ends_.emplace_back(classes_.size(), -1);
    // Each class goes on until its next wait; then all collectives that every class has begun are added.
    size_t done = 0;
    while (done < classes_.size()) {
      done = 0;
      for (size_t rank = 0; rank < classes_.size(); ++rank)
        if (go_on(rank, batch, cursor[rank])) ++done;
    }
    if (is_last) previous_ = batch.over;
  }

  bool is_in(const Batch& batch, const StepItem& item) const {
    if (batch.is_last) return true;
    if (item.kind == StepItem::Kind::compute) return !item.is_update();
    const auto number = static_cast<size_t>(item.collective);
    return !classes_.front().program->collectives[number].is_of_last_batch && !item.is_next_run;
  }

  /// Adds the tasks of a class up to a wait for what others have not begun; true at its end.
  bool go_on(size_t rank, Batch& batch, size_t& cursor) {
    const std::vector<StepItem>& items = classes_[rank].program->items;
    double seconds = 0;
    std::string first, work;
    const auto flush = [&] {
      if (seconds <= 0) return;
      graph_.add({.name = first, .kind = work, .stream = streams_[rank], .seconds = seconds});
      seconds = 0;
    };
    for (; cursor < items.size(); ++cursor) {
      const StepItem& item = items[cursor];
      if (!is_in(batch, item)) continue;
      if (item.is_next_run && batch.is_last && batch.step == 0) {
        if (item.kind == StepItem::Kind::begin) add_begin(rank, item, batch);
        continue;  // nothing was left by a step before
      }
      if (item.kind == StepItem::Kind::compute) {
        if (seconds > 0 && work != item.work) flush();
        if (seconds <= 0) first = item.name, work = item.work;
        seconds += item.seconds * classes_[rank].factor;
        continue;
      }
      flush();
      if (item.kind == StepItem::Kind::begin) {
        add_begin(rank, item, batch);
        continue;
      }
      const auto number = static_cast<size_t>(item.collective);
      const int32_t waits_for = item.is_next_run && !previous_.empty() ? previous_[number] : batch.over[number];
      if (waits_for < 0) {
        if (item.is_next_run) continue;
        return false;
      }
      graph_.add({.name = "wait for " + item.name, .kind = "wait", .stream = streams_[rank], .after = {waits_for}});
    }
    flush();
    if (!batch.is_last) return true;
    int32_t& end = ends_.back()[rank];
    if (end < 0) end = graph_.add({.name = "end of step", .kind = "step", .stream = streams_[rank]});
    return true;
  }

  void add_begin(size_t rank, const StepItem& item, Batch& batch) {
    const auto number = static_cast<size_t>(item.collective);
    batch.begun[number].push_back(graph_.add({.name = "begin " + item.name,
                                              .kind = "communication",
                                              .stream = streams_[rank],
                                              .seconds = options_.start_seconds}));
    if (batch.begun[number].size() < classes_.size()) return;
    Task task = exchange(number);
    task.after = batch.begun[number];
    batch.over[number] = graph_.add(std::move(task));
  }

  const std::vector<RankClass>& classes_;
  const StepOptions& options_;
  SimulatedStep& result_;
  TaskGraph& graph_;
  std::vector<int> streams_;
  int network_ = 0, device_ = -1, host_ = -1, uplink_ = -1;
  std::vector<std::vector<int32_t>> ends_;  // per step and class
  std::vector<int32_t> previous_;           // collectives of the step before
};

double end_of_step(const std::vector<Span>& spans, const std::vector<int32_t>& ends) {
  double end = 0;
  for (const int32_t task : ends) end = std::max(end, spans[static_cast<size_t>(task)].end);
  return end;
}

}  // namespace

SimulatedStep simulate_step(const std::vector<RankClass>& classes, const machines::ClusterFile& cluster,
                            const StepOptions& options) {
  check(!classes.empty() && options.steps >= 2, "a simulation of no rank or of fewer than two steps");
  SimulatedStep result;
  Builder builder(classes, cluster, options, result);
  builder.run();
  result.spans = result.tasks.run();
  const std::vector<std::vector<int32_t>>& ends = builder.ends();
  result.seconds = end_of_step(result.spans, ends.back()) - end_of_step(result.spans, ends[ends.size() - 2]);
  for (const RankClass& rank : classes)
    result.compute_seconds = std::max(result.compute_seconds, rank.factor * rank.program->seconds_of(options.batches));
  result.exchange_seconds = busy_seconds(result.tasks, result.spans, builder.network()) / options.steps;
  result.waiting_seconds = std::max(0.0, result.seconds - result.compute_seconds);
  for (size_t number = 0; number < result.collectives.size(); ++number) {
    const CollectiveCost& cost = result.collectives[number];
    const int times = classes.front().program->collectives[number].is_of_last_batch ? 1 : options.batches;
    result.link_bytes += times * (cost.host_bytes > 0 ? cost.host_bytes : cost.device_bytes);
  }
  return result;
}

std::vector<int64_t> unequal_shares(int64_t batch, const std::vector<double>& speeds) {
  const double all = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  std::vector<int64_t> shares;
  std::vector<std::pair<double, size_t>> rest;
  int64_t given = 0;
  for (size_t rank = 0; rank < speeds.size(); ++rank) {
    const double exact = static_cast<double>(batch) * speeds[rank] / all;
    shares.push_back(std::max<int64_t>(1, static_cast<int64_t>(exact)));
    given += shares.back();
    rest.emplace_back(exact - static_cast<double>(shares.back()), rank);
  }
  std::stable_sort(rest.begin(), rest.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (size_t at = 0; given < batch; at = (at + 1) % rest.size(), ++given) ++shares[rest[at].second];
  // The one sample that every rank has may be more than its rate gives it.
  std::priority_queue<std::pair<int64_t, size_t>> largest;
  for (size_t rank = 0; given > batch && rank < shares.size(); ++rank) largest.emplace(shares[rank], rank);
  for (; given > batch && largest.top().first > 1; --given) {
    const size_t rank = largest.top().second;
    largest.pop();
    largest.emplace(--shares[rank], rank);
  }
  return shares;
}

double straggler_factor(const machines::Stragglers& stragglers, int ranks, uint64_t seed, int draws) {
  if (stragglers.jitter == 0 && stragglers.slow_share == 0) return 1;
  RandomStream random(mix(seed, hash_name("stragglers")));
  std::vector<double> own(static_cast<size_t>(ranks), 1);
  for (double& factor : own)
    if (random.uniform() < stragglers.slow_share) factor = stragglers.slow_factor;
  double sum = 0;
  for (int draw = 0; draw < draws; ++draw) {
    double largest = 0;
    for (const double factor : own)
      largest = std::max(largest, factor * std::exp(stragglers.jitter * static_cast<double>(random.normal())));
    sum += largest;
  }
  return sum / draws;
}

double slowest_factor(const machines::ClusterFile& cluster, int ranks, uint64_t seed) {
  double slowest = cluster.speed_of(0);
  for (int rank = 1; rank < ranks; ++rank) slowest = std::min(slowest, cluster.speed_of(rank));
  return straggler_factor(cluster.stragglers, ranks, seed) / slowest;
}

}  // namespace weft::simulate
