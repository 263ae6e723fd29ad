#include "weft/cli/forecast/simulated_timeline.h"

namespace weft::cli {

plot::Timeline simulated_timeline(const simulate::TaskGraph& tasks, const std::vector<simulate::Span>& spans,
                                  const std::string& title) {
  constexpr double kPerSecond = 1e3;
  plot::Timeline timeline{.title = title, .x_label = "milliseconds", .rows = tasks.streams(), .boxes = {}};
  timeline.rows.push_back("messages");
  for (size_t index = 0; index < spans.size(); ++index) {
    const simulate::Task& task = tasks.tasks()[index];
    const simulate::Span& span = spans[index];
    if (span.end <= span.begin) continue;
    timeline.boxes.push_back({.row = task.stream < 0 ? tasks.streams().size() : static_cast<size_t>(task.stream),
                              .begin = span.begin * kPerSecond,
                              .end = span.end * kPerSecond,
                              .name = task.name,
                              .kind = task.kind});
  }
  return timeline;
}

}  // namespace weft::cli
