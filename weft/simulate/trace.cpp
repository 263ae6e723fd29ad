#include "weft/simulate/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

namespace weft::simulate {

namespace {

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

void add_row(std::string& trace, size_t row, const std::string& name) {
  trace += fmt::format(R"({{"ph":"M","name":"thread_name","pid":1,"tid":{},"args":{{"name":{}}}}},)"
                       "\n"
                       R"({{"ph":"M","name":"thread_sort_index","pid":1,"tid":{},"args":{{"sort_index":{}}}}},)"
                       "\n",
                       row, quoted(name), row, row);
}

}  // namespace

std::string chrome_trace(const TaskGraph& tasks, const std::vector<Span>& spans, const std::string& process) {
  std::string trace = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  const size_t streams = tasks.streams().size();
  for (size_t stream = 0; stream < streams; ++stream) add_row(trace, stream + 1, tasks.streams()[stream]);
  std::vector<size_t> order(spans.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return spans[a].begin < spans[b].begin; });
  std::vector<double> free_from;  // of rows for tasks of no stream
  for (const size_t index : order) {
    const Task& task = tasks.tasks()[index];
    const Span& span = spans[index];
    size_t row = static_cast<size_t>(task.stream + 1);
    if (task.stream < 0) {
      if (span.end <= span.begin) continue;
      auto free = std::find_if(free_from.begin(), free_from.end(), [&](double from) { return from <= span.begin; });
      if (free == free_from.end()) {
        add_row(trace, streams + 1 + free_from.size(), fmt::format("messages {}", free_from.size() + 1));
        free = free_from.insert(free, 0);
      }
      *free = span.end;
      row = streams + 1 + static_cast<size_t>(free - free_from.begin());
    }
    trace += fmt::format(R"({{"ph":"X","pid":1,"tid":{},"name":{},"cat":{},"ts":{:.3f},"dur":{:.3f}}},)"
                         "\n",
                         row, quoted(task.name), quoted(task.kind), span.begin * 1e6, (span.end - span.begin) * 1e6);
  }
  trace += fmt::format(R"({{"ph":"M","name":"process_name","pid":1,"args":{{"name":{}}}}}]}})", quoted(process));
  return trace + "\n";
}

}  // namespace weft::simulate
