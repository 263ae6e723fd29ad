// A discrete-event simulation of tasks that wait for each other, for the stream they run on and for links that they
// share. Steps, pipelines and collectives become such tasks; ranks that do the same become one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::simulate {

/// Bytes through a link, which all tasks that use it at a time share evenly.
struct Demand {
  int link = 0;
  double bytes = 0;
};

struct Task {
  std::string name = {};
  /// For reports and traces: "compute", "all_reduce".
  std::string kind = {};
  /// Does one task at a time, in the order in which they were added; -1: none.
  int stream = -1;
  /// That pass whatever others do; the demands come behind them, all at once, at the rate of the slowest.
  double seconds = 0;
  std::vector<Demand> demands = {};
  std::vector<int32_t> after = {};  // tasks that were added before and have to be over
};

struct Span {
  double begin = 0, end = 0;
};

class TaskGraph {
 public:
  int add_stream(std::string name);
  int add_link(std::string name, double bytes_per_second);
  /// Its number. Error(internal) where it waits for one that was not added yet.
  int32_t add(Task task);
  /// One more that has to be over before the task begins; may have been added later.
  void wait_for(int32_t task, int32_t other) { tasks_[static_cast<size_t>(task)].after.push_back(other); }

  const std::vector<Task>& tasks() const { return tasks_; }
  const std::vector<std::string>& streams() const { return streams_; }
  const std::vector<std::string>& links() const { return link_names_; }

  /// When each task began, its stream free and what it waits for over, and ended. Deterministic.
  std::vector<Span> run();
  /// Bytes that went through each link, and seconds in which it was in use; of the last run().
  const std::vector<double>& link_bytes() const { return link_bytes_; }
  const std::vector<double>& link_busy_seconds() const { return link_busy_; }

 private:
  std::vector<Task> tasks_;
  std::vector<std::string> streams_, link_names_;
  std::vector<double> link_rates_, link_bytes_, link_busy_;
  std::vector<int32_t> last_of_stream_;
};

/// The last end.
double end_of(const std::vector<Span>& spans);
/// Seconds of the tasks on a stream.
double busy_seconds(const TaskGraph& graph, const std::vector<Span>& spans, int stream);

}  // namespace weft::simulate
