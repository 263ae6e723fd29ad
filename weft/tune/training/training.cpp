#include "weft/tune/training/training.h"

#include <signal.h>

namespace weft::tune {

namespace {

class TrainingHere : public Training {
 public:
  explicit TrainingHere(const std::vector<std::string>& words) : process_(words, launch::ChildProcess::Output::kept) {}
  bool has_ended() override { return process_.has_ended(); }
  std::string read() override { return process_.read(); }
  void stop() override { process_.send(SIGTERM); }
  int exit_code() const override { return process_.exit_code(); }
  bool was_killed() const override { return process_.was_killed(); }
  bool was_lost() const override { return false; }
  int64_t process() const override { return process_.process(); }

 private:
  launch::ChildProcess process_;
};

}  // namespace

std::vector<std::string> TrainingJob::words(const std::string& program) const {
  std::vector<std::string> words = {program, "train"};
  if (goes_on)
    words.insert(words.end(), {"--resume", run.string()});
  else
    words.insert(words.end(), {recipe.string(), "--run", run.string()});
  words.insert(words.end(), options.begin(), options.end());
  return words;
}

std::unique_ptr<Training> train_here(const TrainingJob& job, const std::string& program) {
  return std::make_unique<TrainingHere>(job.words(program));
}

}  // namespace weft::tune
