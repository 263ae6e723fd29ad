#include "weft/passes/ranks/pipeline_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/names.h"

namespace weft::passes {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int64_t kMostPlacedByTimes = 2000;  // pieces of work: searches make thousands of schedules

using Slots = std::vector<PipelineSlot>;

Slots gpipe(int micro_batches) {
  Slots slots;
  for (const PipelineWork work : {PipelineWork::forward, PipelineWork::backward})
    for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) slots.push_back({work, micro_batch, 0});
  return slots;
}

Slots one_forward_one_backward(int rank, int ranks, int micro_batches) {
  Slots slots;
  const int ahead = std::min(ranks - 1 - rank, micro_batches);
  for (int micro_batch = 0; micro_batch < ahead; ++micro_batch)
    slots.push_back({PipelineWork::forward, micro_batch, 0});
  for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    if (ahead + micro_batch < micro_batches) slots.push_back({PipelineWork::forward, ahead + micro_batch, 0});
    slots.push_back({PipelineWork::backward, micro_batch, 0});
  }
  return slots;
}

/// When each piece of work of each stage is done; kNever: it is not yet.
class Done {
 public:
  Done(const StagePlacement& placement, int micro_batches, double link)
      : placement_(placement), stages_(placement.stages()), micro_batches_(micro_batches), link_(link) {
    for (std::vector<double>& times : times_)
      times.assign(static_cast<size_t>(stages_) * static_cast<size_t>(micro_batches), kNever);
    arrivals_ = {times_[kForward], times_[kInputs]};
    for (std::vector<double>& free : link_is_free_) free.assign(static_cast<size_t>(placement.ranks), 0);
  }

  int stage_of(int rank, const PipelineSlot& slot) const { return placement_.stage_of(rank, slot.chunk); }
  bool is_one(const PipelineSlot& slot) const {
    return slot.micro_batch >= 0 && slot.micro_batch < micro_batches_ && slot.chunk >= 0 &&
           slot.chunk < placement_.chunks;
  }

  /// When its operands are there; kNever where that is not known yet.
  double ready(int rank, const PipelineSlot& slot) const {
    const int stage = stage_of(rank, slot), m = slot.micro_batch;
    if (slot.work == PipelineWork::forward) return stage == 0 ? 0 : arrivals_[kForward][place_of(stage - 1, m)];
    if (slot.work == PipelineWork::backward_weights) return at(kInputs, stage, m);
    const double own = at(kForward, stage, m);
    return stage + 1 == stages_ ? own : std::max(own, arrivals_[kInputs][place_of(stage + 1, m)]);
  }

  /// All that a rank does, in its order. False where it is done already.
  bool set(int rank, const PipelineSlot& slot, double end) {
    const int stage = stage_of(rank, slot), m = slot.micro_batch;
    const size_t place = place_of(stage, m);
    const bool inputs = slot.work == PipelineWork::backward || slot.work == PipelineWork::backward_inputs;
    const bool weights = slot.work == PipelineWork::backward || slot.work == PipelineWork::backward_weights;
    bool is_first = true;
    for (const auto& [is_of_it, kind] : {std::pair{slot.work == PipelineWork::forward, kForward},
                                         std::pair{inputs, kInputs}, std::pair{weights, kWeights}}) {
      if (!is_of_it) continue;
      is_first = is_first && times_[kind][place] == kNever;
      times_[kind][place] = end;
      if (kind == kForward && stage + 1 < stages_) send(kind, place, rank, placement_.rank_of(stage + 1), end);
      if (kind == kInputs && stage > 0) send(kind, place, rank, placement_.rank_of(stage - 1), end);
    }
    return is_first;
  }

  bool is_all() const {
    return std::all_of(times_.begin(), times_.end(), [](const std::vector<double>& times) {
      return std::find(times.begin(), times.end(), kNever) == times.end();
    });
  }

 private:
  static constexpr size_t kForward = 0, kInputs = 1, kWeights = 2;
  size_t place_of(int stage, int micro_batch) const {
    return static_cast<size_t>(stage) * static_cast<size_t>(micro_batches_) + static_cast<size_t>(micro_batch);
  }
  double at(size_t kind, int stage, int micro_batch) const { return times_[kind][place_of(stage, micro_batch)]; }

  /// A rank sends to the one before it and to the one behind it, or the last one to the first.
  void send(size_t kind, size_t place, int from, int to, double end) {
    double& arrival = arrivals_[kind][place] = end;
    if (from == to) return;
    const bool is_onward = to == from + 1 || (from > to + 1);
    double& free = link_is_free_[is_onward ? 0 : 1][static_cast<size_t>(from)];
    arrival = free = std::max(end, free) + link_;
  }

  const StagePlacement placement_;
  const int stages_, micro_batches_;
  const double link_;
  std::array<std::vector<double>, 3> times_;
  std::array<std::vector<double>, 2> arrivals_, link_is_free_;  // of forward and inputs; onward and back, per rank
};

/// ZB-H1: as 1f1b, but the gradients of weights of a rank lag behind by as many micro-batches as there are ranks before
/// it. What lags fills the end, where ranks would wait for those behind them.
Slots zero_bubble(int rank, int ranks, int micro_batches) {
  Slots slots;
  const int ahead = std::min(ranks - 1 - rank, micro_batches);
  int weights = 0;
  for (int micro_batch = 0; micro_batch < ahead; ++micro_batch)
    slots.push_back({PipelineWork::forward, micro_batch, 0});
  for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    if (ahead + micro_batch < micro_batches) slots.push_back({PipelineWork::forward, ahead + micro_batch, 0});
    slots.push_back({PipelineWork::backward_inputs, micro_batch, 0});
    if (micro_batch >= rank) slots.push_back({PipelineWork::backward_weights, weights++, 0});
  }
  while (weights < micro_batches) slots.push_back({PipelineWork::backward_weights, weights++, 0});
  return slots;
}

/// As Narayanan et al. do it. Where the ranks do not divide the micro-batches, the last group lacks some.
Slots interleaved(int rank, int ranks, int micro_batches, int chunks) {
  const int all = (micro_batches + ranks - 1) / ranks * ranks * chunks;
  Slots slots;
  const auto add = [&](PipelineWork work, int at) {
    const int chunk = at % (ranks * chunks) / ranks, m = at / (ranks * chunks) * ranks + at % ranks;
    if (m < micro_batches) slots.push_back({work, m, work == PipelineWork::forward ? chunk : chunks - 1 - chunk});
  };
  const int ahead = std::min(all, (ranks - rank - 1) * 2 + (chunks - 1) * ranks);
  for (int at = 0; at < ahead; ++at) add(PipelineWork::forward, at);
  for (int at = 0; at < all; ++at) {
    if (ahead + at < all) add(PipelineWork::forward, ahead + at);
    add(PipelineWork::backward, at);
  }
  return slots;
}

double seconds_of(const PipelineTimes& times, int stage, PipelineWork work) {
  const auto at = static_cast<size_t>(stage);
  double seconds = work == PipelineWork::forward ? times.forward.at(at) : 0;
  if (work == PipelineWork::backward || work == PipelineWork::backward_inputs) seconds += times.backward_inputs.at(at);
  if (work == PipelineWork::backward || work == PipelineWork::backward_weights)
    seconds += times.backward_weights.at(at);
  return seconds;
}

/// How ZeroBubbleV places work.
struct PlacingRule {
  /// Rather than beginning gradients of weights, a rank waits so long for more urgent work, in parts of what they take.
  double patience = 0;
  /// Whether the earlier chunk leaves room for a micro-batch of the later one. Without it ranks may wait for each
  /// other, but with equal times none does.
  bool leaves_room = true;
};

/// ZB-V, slot by slot: the rank that can begin something first does so. A rank that has a choice goes on backward, then
/// forward, its later chunk first, and computes gradients of weights only where nothing else can begin. It keeps no
/// more than so many chunks of micro-batches.
class ZeroBubbleV {
 public:
  ZeroBubbleV(int ranks, int micro_batches, const PipelineTimes& times, const PlacingRule& rule)
      : placement_{.ranks = ranks, .chunks = 2, .is_v = true},
        micro_batches_(micro_batches),
        times_(times),
        rule_(rule),
        done_(placement_, micro_batches, times.link),
        free_(static_cast<size_t>(ranks), 0),
        kept_(static_cast<size_t>(ranks), 0),
        counts_(static_cast<size_t>(ranks)),
        next_(static_cast<size_t>(ranks)) {}

  PipelineSchedule run() {
    PipelineSchedule schedule{PipelineOrder(free_.size()), placement_};
    for (int rank = 0; rank < placement_.ranks; ++rank) find_next(rank);
    for (int left = 3 * placement_.stages() * micro_batches_; left > 0; --left) {
      const int rank = std::get<2>(*soonest_.begin());
      place(at(next_, rank), rank, schedule);
      // Only neighbours read what it has made.
      for (int near = std::max(rank - 1, 0); near <= std::min(rank + 1, placement_.ranks - 1); ++near) find_next(near);
    }
    return schedule;
  }

 private:
  struct Next {
    double begin = kNever;
    int urgency = 0;  // the least is the most urgent
    PipelineSlot slot = {};
  };
  static bool is_sooner(const Next& one, const Next& other) {
    return std::pair(one.begin, one.urgency) < std::pair(other.begin, other.urgency);
  }
  template <typename T>
  static T& at(std::vector<T>& of, int rank) {
    return of[static_cast<size_t>(rank)];
  }
  int& count(int rank, PipelineWork work, int chunk) {
    return at(counts_, rank)[static_cast<size_t>(work)][static_cast<size_t>(chunk)];
  }

  void place(const Next& chosen, int rank, PipelineSchedule& schedule) {
    check(chosen.begin < kNever, "a pipeline that waits for itself");
    const PipelineSlot slot = chosen.slot;
    at(schedule.order, rank).push_back(slot);
    const double end = chosen.begin + seconds_of(times_, placement_.stage_of(rank, slot.chunk), slot.work);
    at(free_, rank) = end;
    done_.set(rank, slot, end);
    ++count(rank, slot.work, slot.chunk);
    if (slot.work == PipelineWork::forward) ++at(kept_, rank);
    if (slot.work == PipelineWork::backward_weights) --at(kept_, rank);
  }

  bool has_room(int rank, int chunk) {
    const bool leaves = rule_.leaves_room && chunk == 0 && count(rank, PipelineWork::forward, 1) < micro_batches_;
    return at(kept_, rank) + (leaves ? 1 : 0) < placement_.stages();
  }

  void find_next(int rank) {
    constexpr std::pair<PipelineWork, int> kByUrgency[] = {
        {PipelineWork::backward_inputs, 0}, {PipelineWork::backward_inputs, 1},  {PipelineWork::forward, 1},
        {PipelineWork::forward, 0},         {PipelineWork::backward_weights, 0}, {PipelineWork::backward_weights, 1}};
    soonest_.erase({at(next_, rank).begin, at(next_, rank).urgency, rank});
    Next urgent, weights;
    int urgency = 0;
    for (const auto& [work, chunk] : kByUrgency) {
      const PipelineSlot slot{work, count(rank, work, chunk), chunk};
      ++urgency;
      if (slot.micro_batch == micro_batches_ || (work == PipelineWork::forward && !has_room(rank, chunk))) continue;
      const Next found{std::max(at(free_, rank), done_.ready(rank, slot)), urgency, slot};
      Next& best = work == PipelineWork::backward_weights ? weights : urgent;
      if (is_sooner(found, best)) best = found;
    }
    const int stage = placement_.stage_of(rank, weights.slot.chunk);
    const double waits = rule_.patience * seconds_of(times_, stage, PipelineWork::backward_weights);
    const Next& next = at(next_, rank) = weights.begin + waits < urgent.begin ? weights : urgent;
    soonest_.insert({next.begin, next.urgency, rank});
  }

  const StagePlacement placement_;
  const int micro_batches_;
  const PipelineTimes& times_;
  const PlacingRule rule_;
  Done done_;
  std::vector<double> free_;
  std::vector<int> kept_;                                  // chunks of micro-batches that are not all backward
  std::vector<std::array<std::array<int, 2>, 4>> counts_;  // per rank, work and chunk
  std::vector<Next> next_;
  std::set<std::tuple<double, int, int>> soonest_;  // begin, urgency and rank of each
};

/// The best of several orders by these times; that for equal times is one of them.
PipelineSchedule zero_bubble_v(int ranks, int micro_batches, const PipelineTimes& times) {
  const PipelineTimes equal = equal_times(2 * ranks, 1, 2);
  PipelineSchedule best = ZeroBubbleV(ranks, micro_batches, equal, {.patience = 0, .leaves_room = false}).run();
  if (!is_made_by_times("zero_bubble_v", ranks, micro_batches)) return best;
  double least = simulate(best, times).seconds;
  for (const double patience : {0.0, 0.25, 0.5}) {
    PipelineSchedule other = ZeroBubbleV(ranks, micro_batches, times, {.patience = patience}).run();
    const double seconds = simulate(other, times).seconds;
    if (seconds >= least * (1 - 1e-9)) continue;
    least = seconds;
    best = std::move(other);
  }
  return best;
}

std::string_view name_of(PipelineWork work) {
  constexpr std::string_view kNames[] = {"forward", "backward", "the gradients of the inputs",
                                         "the gradients of the weights"};
  return kNames[static_cast<size_t>(work)];
}

}  // namespace

const std::vector<std::string>& pipeline_schedules() {
  static const std::vector<std::string> names = {"gpipe", "1f1b", "interleaved", "zero_bubble", "zero_bubble_v"};
  return names;
}

StagePlacement place_stages(std::string_view name, int ranks, int chunks) {
  const std::vector<std::string>& known = pipeline_schedules();
  if (std::find(known.begin(), known.end(), name) == known.end())
    fail(ErrorKind::usage, "there is no schedule '{}' of a pipeline{}", name, suggestion(std::string(name), known));
  if (const int own = chunks_of(name, chunks); own != chunks)
    fail(ErrorKind::usage, "the schedule '{}' has {} per rank, not {}; choose 'interleaved'", name,
         own == 1 ? "one chunk" : "two chunks", chunks);
  return {.ranks = ranks, .chunks = chunks, .is_v = name == "zero_bubble_v"};
}

PipelineSchedule make_pipeline_schedule(std::string_view name, int ranks, int micro_batches, int chunks,
                                        const PipelineTimes& times) {
  check(ranks >= 1 && micro_batches >= 1 && chunks >= 1, "a pipeline of nothing");
  PipelineSchedule schedule{.order = {}, .placement = place_stages(name, ranks, chunks)};
  if (name == "zero_bubble_v") return zero_bubble_v(ranks, micro_batches, times);
  for (int rank = 0; rank < ranks; ++rank)
    schedule.order.push_back(name == "gpipe"         ? gpipe(micro_batches)
                             : name == "zero_bubble" ? zero_bubble(rank, ranks, micro_batches)
                             : chunks > 1            ? interleaved(rank, ranks, micro_batches, chunks)
                                                     : one_forward_one_backward(rank, ranks, micro_batches));
  return schedule;
}

PipelineSchedule make_pipeline_schedule(std::string_view name, int ranks, int micro_batches, int chunks) {
  return make_pipeline_schedule(name, ranks, micro_batches, chunks, equal_times(ranks * chunks, 1, 2));
}

PipelineSchedule make_pipeline_schedule(std::string_view name, int ranks, int micro_batches) {
  return make_pipeline_schedule(name, ranks, micro_batches, chunks_of(name, 1));
}

bool is_made_by_times(std::string_view name, int ranks, int micro_batches) {
  return name == "zero_bubble_v" && int64_t{6} * ranks * micro_batches <= kMostPlacedByTimes;
}

int chunks_of(std::string_view name, int wanted) {
  if (name == "zero_bubble_v") return 2;
  return name == "interleaved" ? wanted : 1;
}

double PipelineForecast::bubble() const {
  const double idle_seconds = std::accumulate(idle.begin(), idle.end(), 0.0);
  return seconds > 0 ? idle_seconds / (seconds * static_cast<double>(idle.size())) : 0;
}

PipelineForecast simulate(const PipelineSchedule& of, const PipelineTimes& times) {
  const PipelineOrder& schedule = of.order;
  int micro_batches = 0;
  for (const Slots& slots : schedule)
    for (const PipelineSlot& slot : slots) micro_batches = std::max(micro_batches, slot.micro_batch + 1);
  Done done(of.placement, micro_batches, times.link);
  PipelineForecast forecast;
  forecast.begins.resize(schedule.size());
  forecast.ends.resize(schedule.size());
  forecast.most_waiting.assign(schedule.size(), 0);
  std::vector<double> busy(schedule.size(), 0);
  std::vector<int> waiting(schedule.size(), 0);
  for (bool moves = true; moves;) {
    moves = false;
    for (size_t at = 0; at < schedule.size(); ++at) {
      const int rank = static_cast<int>(at);
      std::vector<double>& ends = forecast.ends[at];
      while (ends.size() < schedule[at].size()) {
        const PipelineSlot& slot = schedule[at][ends.size()];
        if (!done.is_one(slot)) fail(ErrorKind::usage, "rank {} of the pipeline has no such work", rank);
        const double ready = done.ready(rank, slot);
        if (ready == kNever) break;
        const double begin = std::max(ready, ends.empty() ? 0 : ends.back());
        const double seconds = seconds_of(times, done.stage_of(rank, slot), slot.work);
        if (!done.set(rank, slot, begin + seconds))
          fail(ErrorKind::usage, "rank {} of the pipeline does {} of micro-batch {} twice", rank, name_of(slot.work),
               slot.micro_batch);
        busy[at] += seconds;
        if (slot.work == PipelineWork::forward)
          forecast.most_waiting[at] = std::max(forecast.most_waiting[at], ++waiting[at]);
        if (slot.work == PipelineWork::backward || slot.work == PipelineWork::backward_weights) --waiting[at];
        forecast.begins[at].push_back(begin);
        ends.push_back(begin + seconds);
        forecast.seconds = std::max(forecast.seconds, begin + seconds);
        moves = true;
      }
    }
  }
  for (size_t at = 0; at < schedule.size(); ++at)
    if (forecast.ends[at].size() < schedule[at].size()) {
      const PipelineSlot& slot = schedule[at][forecast.ends[at].size()];
      fail(ErrorKind::usage, "rank {} of the pipeline waits for ever to do {} of micro-batch {}", at,
           name_of(slot.work), slot.micro_batch);
    }
  if (!done.is_all()) fail(ErrorKind::usage, "the schedule of the pipeline leaves out some of its work");
  for (const double seconds : busy) forecast.idle.push_back(forecast.seconds - seconds);
  return forecast;
}

PipelineTimes equal_times(int stages, double forward, double backward, double link) {
  const auto count = static_cast<size_t>(stages);
  return {std::vector<double>(count, forward), std::vector<double>(count, backward / 2),
          std::vector<double>(count, backward / 2), link};
}

}  // namespace weft::passes
