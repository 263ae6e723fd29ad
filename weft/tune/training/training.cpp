#include "weft/tune/training/training.h"

#include <signal.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "weft/base/error.h"

namespace weft::tune {

using launch::ChildProcess;

class Trainers::TrainingHere : public Training {
 public:
  TrainingHere(std::unique_ptr<ChildProcess> process, std::shared_ptr<Idle> idle)
      : process_(std::move(process)), number_(process_->process()), idle_(std::move(idle)) {}

  bool has_ended() override {
    if (process_ == nullptr || has_ended_) return true;
    answer_ += process_->hear();
    if (answer_ == kTrained) {
      output_ += process_->read();
      idle_->push_back(std::move(process_));
      return true;
    }
    has_ended_ = process_->has_ended();
    return has_ended_;
  }
  std::string read() override {
    std::string text = std::exchange(output_, {});
    return process_ == nullptr ? text : text + process_->read();
  }
  void stop() override {
    if (process_ != nullptr) process_->send(SIGTERM);
  }
  int exit_code() const override { return process_ == nullptr ? 0 : process_->exit_code(); }
  bool was_killed() const override { return process_ != nullptr && process_->was_killed(); }
  bool was_lost() const override { return false; }
  int64_t process() const override { return number_; }

 private:
  std::unique_ptr<ChildProcess> process_;  // null: its run has ended, and it was given back
  const int64_t number_;
  const std::shared_ptr<Idle> idle_;
  std::string answer_, output_;
  bool has_ended_ = false;  // the process
};

std::vector<std::string> TrainingJob::words() const {
  std::vector<std::string> words = {"train"};
  if (goes_on)
    words.insert(words.end(), {"--resume", run.string()});
  else
    words.insert(words.end(), {recipe.string(), "--run", run.string()});
  words.insert(words.end(), options.begin(), options.end());
  return words;
}

Trainers::Trainers(std::string program) : program_(std::move(program)) {}

std::unique_ptr<Training> Trainers::train(const TrainingJob& job) {
  const std::string line = print_words(job.words());
  while (!idle_->empty()) {
    std::unique_ptr<ChildProcess> process = std::move(idle_->back());
    idle_->pop_back();
    if (!process->has_ended() && process->say(line)) return std::make_unique<TrainingHere>(std::move(process), idle_);
  }
  auto process = std::make_unique<ChildProcess>(std::vector<std::string>{program_, "tune", "trainer"},
                                                ChildProcess::Output::spoken_with);
  process->say(line);
  return std::make_unique<TrainingHere>(std::move(process), idle_);
}

void Trainers::dismiss_idle() { idle_->clear(); }

std::string print_words(const std::vector<std::string>& words) { return nlohmann::json(words).dump() + "\n"; }

std::vector<std::string> parse_words(const std::string& line) try {
  return nlohmann::json::parse(line).get<std::vector<std::string>>();
} catch (const nlohmann::json::exception&) {
  fail(ErrorKind::usage, "weft tune trainer: '{}' is no list of words; `weft tune` starts this command", line);
}

}  // namespace weft::tune
