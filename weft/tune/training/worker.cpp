#include "weft/tune/training/worker.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "weft/base/clock.h"
#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/host_name.h"
#include "weft/base/memory.h"
#include "weft/base/sha256.h"
#include "weft/base/version.h"
#include "weft/program/run_data.h"
#include "weft/spec/recipe.h"
#include "weft/tune/training/connection.h"
#include "weft/tune/training/training.h"

namespace weft::tune {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kNap{20};
constexpr double kConnectSeconds = 10, kFarewellSeconds = 30;
constexpr size_t kMostOutput = 16 * 1024, kMostMetrics = 1 << 20;  // bytes of a message

/// One trial at a time.
class WorkPlace {
 public:
  WorkPlace(const WorkerOptions& options, fs::path folder)
      : trainers_(options.program),
        folder_(std::move(folder)),
        connection_(connect_to(options.tuner, kConnectSeconds), options.silence_seconds) {}

  ~WorkPlace() {
    training_.reset();
    std::error_code code;
    fs::remove_all(folder_, code);
  }
  WorkPlace(const WorkPlace&) = delete;
  WorkPlace& operator=(const WorkPlace&) = delete;

  Connection& connection() { return connection_; }
  bool is_busy() const { return training_ != nullptr; }
  /// What came of its last trial is at the tuner.
  bool is_idle() const { return !is_busy() && !awaits_receipt_; }
  void take_receipt() { awaits_receipt_ = false; }

  void receive_run() { connection_.receive_into(run()); }

  void start(const Message& message) {
    const bool goes_on = message.at("goes_on").get<bool>();
    if (!goes_on) fs::remove_all(run());
    make_directories(folder_);
    if (!goes_on) write_atomically(folder_ / "recipe.toml", message.at("recipe").get<std::string>());
    output_.clear();
    told_ = 0;
    training_ = trainers_.train({.trial = message.at("trial").get<int64_t>(),
                                 .run = run(),
                                 .recipe = folder_ / "recipe.toml",
                                 .goes_on = goes_on,
                                 .options = message.at("options").get<std::vector<std::string>>()});
  }
  void stop() {
    if (training_) training_->stop();
  }

  /// Sends what is new. True once the trial has ended and all of it is on its way. `leaves`: this worker takes no
  /// other.
  bool tell(bool leaves) {
    if (!training_) return false;
    const bool has_ended = training_->has_ended();
    output_ += training_->read();
    if (output_.size() > kMostOutput) output_.erase(0, output_.size() - kMostOutput);
    tell_metrics();
    if (!has_ended) return false;
    std::error_code code;
    if (fs::exists(run() / "spec.toml", code)) connection_.send_folder(run());
    connection_.send({{"type", "ended"},
                      {"code", training_->exit_code()},
                      {"was_killed", training_->was_killed()},
                      {"output", output_},
                      {"leaves", leaves}});
    training_.reset();
    awaits_receipt_ = true;
    receive_run();
    return true;
  }

 private:
  fs::path run() const { return folder_ / "run"; }

  /// What the run has written since the last time; from its beginning where it is shorter now, as a resumed one is.
  void tell_metrics() {
    std::ifstream file(run() / "metrics.jsonl", std::ios::binary);
    if (!file) return;
    file.seekg(0, std::ios::end);
    const auto size = static_cast<uint64_t>(file.tellg());
    if (size < told_) told_ = 0;
    while (told_ < size) {
      std::string text(std::min<uint64_t>(size - told_, kMostMetrics), '\0');
      file.seekg(static_cast<std::streamoff>(told_));
      file.read(text.data(), static_cast<std::streamsize>(text.size()));
      if (!file) return;
      // Whole lines, so that nobody reads a torn one.
      const size_t end = text.rfind('\n');
      if (end == text.npos) return;
      text.resize(end + 1);
      connection_.send({{"type", "metrics"}, {"at", told_}, {"text", text}});
      told_ += text.size();
    }
  }

  Trainers trainers_;
  const fs::path folder_;
  Connection connection_;
  std::unique_ptr<Training> training_;
  bool awaits_receipt_ = false;
  std::string output_;
  uint64_t told_ = 0;  // bytes of the metrics
};

class TrialWorker {
 public:
  TrialWorker(const Library& library, const WorkerOptions& options, const WorkerHooks& hooks)
      : library_(library), options_(options), hooks_(hooks), process_(random_hex(8)) {}

  WorkerOutcome run() {
    add_place();
    const int64_t most = options_.trials > 0 ? options_.trials : std::max<int64_t>(1, available_cores() / threads_);
    while (!is_over() && !wants_stop() && static_cast<int64_t>(places_.size()) < most) add_place();
    note(fmt::format("works for the study '{}' at {}, {} trial{} at a time", study_, print_address(options_.tuner),
                     places_.size(), places_.size() == 1 ? "" : "s"));
    while (!is_over()) {
      if (wants_stop()) return leave();
      for (const auto& place : places_) attend(*place);
      std::this_thread::sleep_for(kNap);
    }
    return outcome_;
  }

 private:
  bool wants_stop() const { return hooks_.stop_requested && hooks_.stop_requested(); }
  bool is_over() const { return !outcome_.farewell.empty(); }
  void note(const std::string& line) const {
    if (hooks_.note) hooks_.note(line);
  }
  [[noreturn]] void fail_lost(const std::string& why) const {
    fail(ErrorKind::communication,
         "the tuner at {} is gone ({}); go on with the search there by `weft tune --resume STUDY --serve {}`, then "
         "start "
         "this worker again",
         print_address(options_.tuner), why, print_address({"", options_.tuner.port}));
  }

  /// The next message, in the time that a tuner takes to answer.
  Message await(Connection& connection) {
    while (true) {
      connection.pump(steady_seconds());
      if (std::optional<Message> message = connection.next()) {
        if (message->at("type") == "refused")
          fail(ErrorKind::communication, "the tuner at {} refuses this worker: {}", print_address(options_.tuner),
               message->at("why").get<std::string>());
        if (message->at("type") == "bye") outcome_.farewell = message->at("why").get<std::string>();
        return *message;
      }
      if (connection.is_lost()) fail_lost(connection.why());
      if (wants_stop()) return {{"type", "stopped"}};
      std::this_thread::sleep_for(kNap);
    }
  }

  void add_place() try {
    auto place =
        std::make_unique<WorkPlace>(options_, options_.folder / fmt::format("{}-{}", process_, places_.size()));
    Connection& connection = place->connection();
    const Message hello = await(connection);
    if (is_over() || wants_stop()) return;
    if (hello.at("type") != "hello")
      fail(ErrorKind::communication, "what listens at {} is no tuner of weft", print_address(options_.tuner));
    const std::string trouble = version_trouble(hello.at("weft").get<std::string>(), hello.at("protocol").get<int>(),
                                                std::string(version()), kProtocol);
    if (!trouble.empty()) {
      refuse(connection, trouble);
      fail(ErrorKind::communication, "this worker cannot work for the tuner at {}: {}", print_address(options_.tuner),
           trouble);
    }
    const std::string nonce = random_hex(16), tuner_nonce = hello.at("nonce").get<std::string>();
    connection.send({{"type", "hello"},
                     {"protocol", kProtocol},
                     {"weft", version()},
                     {"nonce", nonce},
                     {"proof", proof_of(Side::worker, options_.token, tuner_nonce, nonce)},
                     {"host", host_name()},
                     {"process", process_},
                     {"memory", memory_limit_bytes()}});
    connection.allow_long_messages();
    const Message welcome = await(connection);
    if (is_over() || wants_stop()) return;
    if (welcome.at("type") != "welcome" || !equal_secrets(welcome.at("proof").get<std::string>(),
                                                          proof_of(Side::tuner, options_.token, tuner_nonce, nonce)))
      fail(ErrorKind::communication, "what listens at {} does not know the token of the study",
           print_address(options_.tuner));
    if (places_.empty()) require_data(connection, welcome);
    place->receive_run();
    connection.send({{"type", "ready"}});
    places_.push_back(std::move(place));
  } catch (const Message::exception&) {
    fail(ErrorKind::communication, "what listens at {} is no tuner of weft", print_address(options_.tuner));
  }

  void refuse(Connection& connection, const std::string& why) const {
    connection.send({{"type", "refused"}, {"why", why}});
    const double begin = steady_seconds();
    while (!connection.is_sent() && !connection.is_lost() && steady_seconds() - begin < kFarewellSeconds) {
      connection.pump(steady_seconds());
      std::this_thread::sleep_for(kNap);
    }
  }

  /// Opens what the trials of the study read.
  void require_data(Connection& connection, const Message& welcome) {
    study_ = welcome.at("study").get<std::string>();
    threads_ = std::max<int64_t>(1, welcome.at("threads").get<int64_t>());
    try {
      spec::RunSpec spec;
      spec::apply_recipe(spec, welcome.at("recipe").get<std::string>(), "the study's recipe", library_);
      for (const auto& assignment : welcome.at("set").get<std::vector<std::string>>())
        spec::set_from_text(spec, assignment, library_);
      const program::RunData data = program::open_run_data(library_, spec);
      const std::string difference = spec::difference_of(
          spec::parse_data_description(welcome.at("data").get<std::string>(), "the study's data"), data.description);
      if (!difference.empty())
        fail(ErrorKind::data, "'{}' on this host is not the data of the study: {}; copy those here", spec.data,
             difference);
      if (!spec.init.empty() && !fs::exists(spec.init))
        fail(ErrorKind::usage, "'{}', whose weights the trials begin with, is not on this host; copy it here",
             spec.init);
    } catch (const Error& error) {
      refuse(connection, error.what());
      throw;
    }
  }

  void attend(WorkPlace& place) {
    Connection& connection = place.connection();
    connection.pump(steady_seconds());
    while (const std::optional<Message> message = connection.next()) take(place, *message);
    if (is_over()) return;
    if (connection.is_lost()) fail_lost(connection.why());
    if (place.tell(false)) ++outcome_.trials;
  }

  void take(WorkPlace& place, const Message& message) {
    const std::string type = message.at("type").get<std::string>();
    if (type == "bye") {
      outcome_.farewell = message.at("why").get<std::string>();
    } else if (type == "train" && !place.is_busy()) {
      note(fmt::format("trains trial {}", message.at("trial").get<int64_t>()));
      place.start(message);
    } else if (type == "stop") {
      place.stop();
    } else if (type == "kept") {
      place.take_receipt();
    } else if (type == "refused") {
      fail(ErrorKind::communication, "the tuner at {} refuses this worker: {}", print_address(options_.tuner),
           message.at("why").get<std::string>());
    }  // "folder": the run of the trial that comes next
  }

  /// Running trials make their checkpoints and go back; no new one is taken.
  WorkerOutcome leave() {
    for (const auto& place : places_) {
      if (!place->is_busy()) place->connection().send({{"type", "leaving"}});
      place->stop();
    }
    const double begin = steady_seconds();
    const auto is_done = [&](const auto& place) {
      return place->connection().is_lost() || (place->is_idle() && place->connection().is_sent());
    };
    while (!std::all_of(places_.begin(), places_.end(), is_done) && steady_seconds() - begin < kFarewellSeconds) {
      for (const auto& place : places_) {
        Connection& connection = place->connection();
        connection.pump(steady_seconds());
        while (const std::optional<Message> message = connection.next())
          if (message->at("type") == "kept") place->take_receipt();
        if (place->tell(true)) ++outcome_.trials;
      }
      std::this_thread::sleep_for(kNap);
    }
    return outcome_;
  }

  const Library& library_;
  const WorkerOptions& options_;
  const WorkerHooks& hooks_;
  const std::string process_;
  std::vector<std::unique_ptr<WorkPlace>> places_;
  WorkerOutcome outcome_;
  std::string study_;
  int64_t threads_ = 1;
};

}  // namespace

WorkerOutcome work_for(const Library& library, const WorkerOptions& options, const WorkerHooks& hooks) {
  make_directories(options.folder);
  return TrialWorker(library, options, hooks).run();
}

}  // namespace weft::tune
