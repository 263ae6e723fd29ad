// The progress of a long run: one line that updates itself on a terminal, a plain line now and then elsewhere. A stream
// that takes nothing any more is no error: the run is worth more than its progress line.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string_view>

namespace weft {

/// Where a run stands. Steps and items count from the start of the run, over all epochs.
struct ProgressReport {
  int64_t epoch = 0, epochs = 0;  // epoch counts from 1 here, as it is shown
  int64_t step = 0, steps = 0;    // steps done, steps in all
  int64_t items = 0;              // images (or tokens) processed so far
  double loss = 0;                // of the batch of this step
  double loss_scale = 0;          // shown where it is not 0
  int64_t skipped_steps = 0;      // then: shown where there are some
  double wait_share = 0;          // of the time, in which steps waited for their batch: shown above 1 %
};

struct ProgressOptions {
  bool terminal = false;             // redraw one line in place; else plain lines
  int columns = 80;                  // of the terminal: longer lines are cut
  double redraw_seconds = 0.1;       // at most one redraw per this time on a terminal
  double line_seconds = 10;          // at most one plain line per this time elsewhere
  std::function<double()> clock;     // seconds, monotonic
  std::string_view item = "images";  // what the rate counts; must outlive the progress
  std::string_view verb = {};        // what is done to the items, where no network is trained: "packed"
};

/// Options that fit `stream`: terminal or not, its width, the steady clock.
ProgressOptions progress_options_for(std::FILE* stream);

class Progress {
 public:
  /// The stream must outlive it.
  Progress(std::FILE* stream, ProgressOptions options);
  /// Ends the line that is being updated, so that what follows starts on a line of its own.
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Cheap and free of allocation: writes only where enough time has gone by or the last step is done.
  void update(const ProgressReport& report);
  /// Prints a whole line above the updating one.
  void message(std::string_view line);
  void finish();

  /// Items per second over the last 5 to 10 seconds; 0 before the second report.
  double rate() const { return rate_; }

 private:
  struct Mark {
    double seconds = 0;
    int64_t items = 0, step = 0;
  };
  void measure(double now, const ProgressReport& report);
  void write(std::string_view text);

  std::FILE* stream_;
  ProgressOptions options_;
  Mark older_, newer_;  // the rate is measured from the older of two marks, set 5 s apart
  bool started_ = false, line_open_ = false;
  double last_write_ = 0, rate_ = 0, seconds_left_ = -1;
};

}  // namespace weft
