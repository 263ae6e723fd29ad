#include "weft/tune/training/training.h"

#include <signal.h>

#include <utility>

#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft::tune {

using launch::ChildProcess;

namespace {
constexpr int kNoAnswer = 1;  // of a process that ended well and never said that it had trained
}

class Trainers::TrainingHere : public Training {
 public:
  TrainingHere(std::unique_ptr<ChildProcess> process, std::shared_ptr<Idle> idle)
      : process_(std::move(process)), number_(process_->process()), idle_(std::move(idle)) {}

  bool has_ended() override {
    if (process_ == nullptr || has_ended_) return true;
    answer_ += process_->hear();
    if (answer_ == kTrained) {
      output_ += process_->read();
      if (was_stopped_)
        process_.reset();  // the signal came too late for this run, and ends the process
      else
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
    // A second signal would end it without a checkpoint.
    if (process_ == nullptr || was_stopped_) return;
    was_stopped_ = true;
    process_->send(SIGTERM);
  }
  int exit_code() const override {
    if (process_ == nullptr) return 0;
    return process_->exit_code() != 0 ? process_->exit_code() : kNoAnswer;
  }
  bool was_killed() const override { return process_ != nullptr && process_->was_killed(); }
  bool was_lost() const override { return false; }
  int news() const override { return process_ == nullptr ? -1 : process_->speech(); }
  int64_t process() const override { return number_; }

 private:
  std::unique_ptr<ChildProcess> process_;  // null: its run has ended, and it was given back
  const int64_t number_;
  const std::shared_ptr<Idle> idle_;
  std::string answer_, output_;
  bool has_ended_ = false;  // the process
  bool was_stopped_ = false;
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

std::string print_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    check(!word.empty(), "words of a run are not empty");
    text += word + '\0';
  }
  return text + '\0';
}

std::optional<std::vector<std::string>> take_words(std::string& read) {
  const std::string first = std::string("train") + '\0';
  if (!read.empty() && read.substr(0, first.size()) != first.substr(0, read.size()))
    fail(ErrorKind::usage, "weft tune trainer: '{}' are no words of `weft train`; `weft tune` starts this command",
         printable(read.substr(0, 80)));
  const size_t end = read.find(std::string(2, '\0'));
  if (end == read.npos) return std::nullopt;
  std::vector<std::string> words;
  for (size_t begin = 0; begin < end;) {
    const size_t next = read.find('\0', begin);
    words.push_back(read.substr(begin, next - begin));
    begin = next + 1;
  }
  read.erase(0, end + 2);
  return words;
}

}  // namespace weft::tune
