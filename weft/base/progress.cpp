#include "weft/base/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "weft/base/format.h"

namespace weft {

namespace {
constexpr double kMarkSeconds = 5;
}  // namespace

ProgressOptions progress_options_for(std::FILE* stream) {
  ProgressOptions options;
  const char* kind = std::getenv("TERM");
  options.terminal = isatty(fileno(stream)) != 0 && kind != nullptr && std::strcmp(kind, "dumb") != 0;
  winsize size{};
  if (options.terminal && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    options.columns = size.ws_col;
  options.clock = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  return options;
}

Progress::Progress(std::FILE* stream, ProgressOptions options) : stream_(stream), options_(std::move(options)) {}

void Progress::measure(double now, const ProgressReport& report) {
  const Mark mark{now, report.items, report.step};
  if (!started_) {
    started_ = true;
    older_ = newer_ = mark;
    last_write_ = now;
    return;
  }
  const double elapsed = now - older_.seconds;
  if (elapsed > 0) {
    rate_ = static_cast<double>(report.items - older_.items) / elapsed;
    const auto steps = static_cast<double>(report.step - older_.step);
    if (steps > 0) seconds_left_ = static_cast<double>(report.steps - report.step) * elapsed / steps;
  }
  if (now - newer_.seconds >= kMarkSeconds) {
    older_ = newer_;
    newer_ = mark;
  }
}

void Progress::update(const ProgressReport& report) {
  const double now = options_.clock();
  const bool first = !started_;
  measure(now, report);
  const double interval = options_.terminal ? options_.redraw_seconds : options_.line_seconds;
  if ((first || now - last_write_ < interval) && report.step != report.steps) return;
  last_write_ = now;

  fmt::memory_buffer line;  // holds 500 bytes without the heap
  auto out = std::back_inserter(line);
  if (options_.terminal) fmt::format_to(out, "\r");
  if (options_.verb.empty())
    fmt::format_to(out, "epoch {}/{}  step {}/{}  {} {}/s  batch loss {:.4f}", report.epoch, report.epochs, report.step,
                   report.steps, human_count(rate_), options_.item, report.loss);
  else
    fmt::format_to(out, "{} {}/{} {}  {}/s", options_.verb, report.step, report.steps, options_.item,
                   human_count(rate_));
  if (report.loss_scale != 0) fmt::format_to(out, "  loss scale {:g}", report.loss_scale);
  if (report.skipped_steps != 0) fmt::format_to(out, "  {} skipped", report.skipped_steps);
  if (report.wait_share > 0.01) fmt::format_to(out, "  waits for data {:.0f} %", 100 * report.wait_share);
  if (report.step == report.steps)
    fmt::format_to(out, "  done");
  else if (seconds_left_ >= 0)
    fmt::format_to(out, "  {} left", human_duration(seconds_left_));
  if (options_.terminal) {
    const auto longest = static_cast<size_t>(options_.columns);  // the carriage return takes no column: one stays free
    if (line.size() > longest) line.resize(longest);
    fmt::format_to(out, "\033[K");  // erase what a longer line left behind
    line_open_ = true;
  } else {
    fmt::format_to(out, "\n");
  }
  write({line.data(), line.size()});
}

void Progress::write(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream_);
  std::fflush(stream_);
}

void Progress::message(std::string_view line) {
  write(fmt::format("{}{}\n", line_open_ ? "\r\033[K" : "", line));
  line_open_ = false;
}

void Progress::finish() {
  write(line_open_ ? "\n" : "");
  line_open_ = false;
}

}  // namespace weft
