#include "weft/simulate/task_graph.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

#include "weft/base/error.h"

namespace weft::simulate {

namespace {

/// A task whose bytes are on their way: so much of it is left, from 1 to 0.
struct Flow {
  int32_t task = 0;
  double left = 1;
  double rate = 0;  // of it, per second
};

struct Event {
  double seconds = 0;
  int32_t task = 0;
  bool operator<(const Event& other) const {  // the queue gives the largest first
    return std::tie(other.seconds, other.task) < std::tie(seconds, task);
  }
};

class Run {
 public:
  Run(const std::vector<Task>& tasks, const std::vector<double>& link_rates, const std::vector<int>& missing,
      const std::vector<std::vector<int32_t>>& successors)
      : tasks_(tasks),
        link_rates_(link_rates),
        missing_(missing),
        successors_(successors),
        spans_(tasks.size()),
        users_(link_rates.size(), 0),
        bytes_(link_rates.size(), 0),
        busy_(link_rates.size(), 0) {}

  std::vector<Span> run() {
    for (size_t index = 0; index < tasks_.size(); ++index)
      if (missing_[index] == 0) begin(static_cast<int32_t>(index));
    while (!events_.empty() || !flows_.empty()) {
      const double next_event = events_.empty() ? std::numeric_limits<double>::infinity() : events_.top().seconds;
      double next_flow = std::numeric_limits<double>::infinity();
      for (const Flow& flow : flows_) next_flow = std::min(next_flow, now_ + flow.left / flow.rate);
      const double next = std::max(now_, std::min(next_event, next_flow));
      advance(next);
      finish_flows();
      while (!events_.empty() && events_.top().seconds <= now_) {
        const int32_t task = events_.top().task;
        events_.pop();
        if (tasks_[static_cast<size_t>(task)].demands.empty())
          finish(task);
        else
          flows_.push_back({task}), changed_ = true;
      }
      if (changed_) share();
    }
    check(finished_ == tasks_.size(), "simulated tasks that wait for each other");
    return std::move(spans_);
  }
  std::vector<double>& bytes() { return bytes_; }
  std::vector<double>& busy() { return busy_; }

 private:
  void begin(int32_t task) {
    spans_[static_cast<size_t>(task)].begin = now_;
    events_.push({now_ + tasks_[static_cast<size_t>(task)].seconds, task});
  }

  void finish(int32_t task) {
    ++finished_;
    spans_[static_cast<size_t>(task)].end = now_;
    for (const int32_t next : successors_[static_cast<size_t>(task)])
      if (--missing_[static_cast<size_t>(next)] == 0) begin(next);
  }

  void advance(double to) {
    const double passed = to - now_;
    for (Flow& flow : flows_) flow.left -= flow.rate * passed;
    for (size_t link = 0; link < users_.size(); ++link)
      if (users_[link] > 0) busy_[link] += passed;
    now_ = to;
  }

  void finish_flows() {
    constexpr double kRounding = 1e-12;
    std::vector<int32_t> over;
    std::erase_if(flows_, [&](const Flow& flow) {
      if (flow.left > kRounding && flow.left / flow.rate > kRounding * now_) return false;
      over.push_back(flow.task);
      return true;
    });
    if (over.empty()) return;
    changed_ = true;
    std::sort(over.begin(), over.end());
    for (const int32_t task : over) {
      for (const Demand& demand : tasks_[static_cast<size_t>(task)].demands)
        bytes_[static_cast<size_t>(demand.link)] += demand.bytes;
      finish(task);
    }
  }

  /// Each link gives all that use it the same rate; a flow goes at the pace of its slowest link.
  void share() {
    std::fill(users_.begin(), users_.end(), 0);
    for (const Flow& flow : flows_)
      for (const Demand& demand : tasks_[static_cast<size_t>(flow.task)].demands)
        if (demand.bytes > 0) ++users_[static_cast<size_t>(demand.link)];
    for (Flow& flow : flows_) {
      double seconds = 1e-15;
      for (const Demand& demand : tasks_[static_cast<size_t>(flow.task)].demands) {
        const auto link = static_cast<size_t>(demand.link);
        seconds = std::max(seconds, demand.bytes * std::max(users_[link], 1) / link_rates_[link]);
      }
      flow.rate = 1 / seconds;
    }
    changed_ = false;
  }

  const std::vector<Task>& tasks_;
  const std::vector<double>& link_rates_;
  std::vector<int> missing_;
  const std::vector<std::vector<int32_t>>& successors_;
  std::vector<Span> spans_;
  std::vector<Flow> flows_;
  std::vector<int> users_;
  std::vector<double> bytes_, busy_;
  std::priority_queue<Event> events_;
  double now_ = 0;
  size_t finished_ = 0;
  bool changed_ = false;
};

}  // namespace

int TaskGraph::add_stream(std::string name) {
  streams_.push_back(std::move(name));
  last_of_stream_.push_back(-1);
  return static_cast<int>(streams_.size()) - 1;
}

int TaskGraph::add_link(std::string name, double bytes_per_second) {
  check(bytes_per_second > 0, "a link without a rate");
  link_names_.push_back(std::move(name));
  link_rates_.push_back(bytes_per_second);
  return static_cast<int>(link_names_.size()) - 1;
}

int32_t TaskGraph::add(Task task) {
  const auto number = static_cast<int32_t>(tasks_.size());
  for (const int32_t earlier : task.after)
    check(earlier >= 0 && earlier < number, "a simulated task that waits for a later one");
  if (task.stream >= 0) {
    int32_t& last = last_of_stream_[static_cast<size_t>(task.stream)];
    if (last >= 0) task.after.push_back(last);
    last = number;
  }
  tasks_.push_back(std::move(task));
  return number;
}

std::vector<Span> TaskGraph::run() {
  std::vector<int> missing(tasks_.size(), 0);
  std::vector<std::vector<int32_t>> successors(tasks_.size());
  for (size_t index = 0; index < tasks_.size(); ++index)
    for (const int32_t earlier : tasks_[index].after) {
      ++missing[index];
      successors[static_cast<size_t>(earlier)].push_back(static_cast<int32_t>(index));
    }
  Run run(tasks_, link_rates_, missing, successors);
  std::vector<Span> spans = run.run();
  link_bytes_ = std::move(run.bytes());
  link_busy_ = std::move(run.busy());
  return spans;
}

double end_of(const std::vector<Span>& spans) {
  double end = 0;
  for (const Span& span : spans) end = std::max(end, span.end);
  return end;
}

double busy_seconds(const TaskGraph& graph, const std::vector<Span>& spans, int stream) {
  double seconds = 0;
  for (size_t index = 0; index < spans.size(); ++index)
    if (graph.tasks()[index].stream == stream) seconds += spans[index].end - spans[index].begin;
  return seconds;
}

}  // namespace weft::simulate
