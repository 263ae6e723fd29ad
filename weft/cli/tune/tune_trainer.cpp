#include "weft/cli/tune/tune_trainer.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/memory.h"
#include "weft/cli/options.h"
#include "weft/data/kept_datasets.h"
#include "weft/train/interrupt.h"
#include "weft/tune/training/training.h"

namespace weft::cli {

namespace {

/// What the tuner asks for.
class Requests {
 public:
  /// The words of a run; nullopt: there are no more, or this process is to end.
  std::optional<std::vector<std::string>> next(const train::InterruptGuard& interrupt) {
    while (true) {
      if (std::optional<std::vector<std::string>> words = tune::take_words(text_)) return words;
      // A signal ends poll(), whereas read() would go on.
      pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
      const int ready = interrupt.requested() ? 0 : poll(&input, 1, kLook);
      if (interrupt.requested()) return std::nullopt;
      if (ready <= 0) continue;
      std::array<char, 4096> piece;
      const ssize_t bytes = read(STDIN_FILENO, piece.data(), piece.size());
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes <= 0) return std::nullopt;
      text_.append(piece.data(), static_cast<size_t>(bytes));
    }
  }

 private:
  static constexpr int kLook = 1000;  // ms, for a signal that came just before poll()
  std::string text_;
};

/// False where the tuner is gone.
bool answer(const std::string& text) {
  return write(STDIN_FILENO, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

int trainer_command(const Library& library, const std::string& program) {
  Library keeping = library;
  keeping.data = data::keep_datasets(library.data);
  const train::InterruptGuard interrupt;
  Requests requests;
  while (const std::optional<std::vector<std::string>> words = requests.next(interrupt)) {
    const int code = train_by_words(keeping, *words, program, [&] { return interrupt.requested(); });
    if (std::fflush(stdout) != 0) fail(ErrorKind::io, "cannot write to standard output");
    if (code != 0) return code;
    release_free_memory();
    if (!answer(tune::kTrained)) return 0;
  }
  // So that a run which the tuner asks for at this moment counts as interrupted, and is trained by another process.
  return interrupt.requested() ? train::kInterruptedExitCode : 0;
}

}  // namespace

void add_tune_trainer(CLI::App& tune, Action& action, const Library& library, const std::string& program) {
  CLI::App* command = tune.add_subcommand("trainer", "Train what the standard input, a socket, says");
  command->group("");  // hidden
  command->callback(
      [program, &action, &library] { action = [program, &library] { return trainer_command(library, program); }; });
}

}  // namespace weft::cli
