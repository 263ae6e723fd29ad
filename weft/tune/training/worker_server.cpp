#include "weft/tune/training/worker_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <utility>

#include "weft/base/clock.h"
#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/sha256.h"
#include "weft/base/version.h"

namespace weft::tune {

namespace fs = std::filesystem;

namespace {

constexpr int kPollMilliseconds = 20;
constexpr double kGreetingSeconds = 600;  // in which a worker has opened its data
constexpr double kToldSeconds = 2;
constexpr size_t kMostKnown = 4096;  // connections

/// Puts what a worker has sent in the place of the run directory, with no moment at which neither is there.
void take_place(const fs::path& received, const fs::path& run) {
  std::error_code code;
  if (!fs::exists(run, code)) {
    fs::rename(received, run);
  } else if (renameat2(AT_FDCWD, received.c_str(), AT_FDCWD, run.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(received);
  } else {  // of file systems that cannot
    fs::remove_all(run);
    fs::rename(received, run);
  }
  sync_directory(run.parent_path());
}

}  // namespace

/// A trial at a worker. The server's thread and the tuner's share it under the server's mutex.
struct WorkerServer::Task {
  TrainingJob job;
  std::string output = {};
  bool is_stop_wanted = false, is_stop_sent = false, has_folder = false;
  bool has_ended = false, was_killed = false, was_lost = false;
  int code = 0;
  fs::path received() const { return job.run.string() + ".received"; }
};

/// One trial at a time, at a worker that may have several such places.
struct WorkerServer::Place {
  enum class Stage { greeting, checking, free, busy, leaving };
  Place(Socket socket, double silence_seconds, double now)
      : connection(std::move(socket), silence_seconds), nonce(random_hex(16)), since(now) {}
  Connection connection;
  const std::string nonce;
  const double since;
  Stage stage = Stage::greeting;
  std::string host = "a stranger", worker = {};  // its name for people, and that of its process
  int64_t memory = 0;                            // bytes that all places of the worker have
  std::shared_ptr<Task> task = {};
};

class WorkerServer::TrainingThere : public Training {
 public:
  TrainingThere(std::mutex& mutex, std::shared_ptr<Task> task) : mutex_(mutex), task_(std::move(task)) {}
  bool has_ended() override {
    const std::lock_guard lock(mutex_);
    return task_->has_ended;
  }
  std::string read() override {
    const std::lock_guard lock(mutex_);
    return std::exchange(task_->output, {});
  }
  void stop() override {
    const std::lock_guard lock(mutex_);
    task_->is_stop_wanted = true;
  }
  int exit_code() const override { return task_->code; }
  bool was_killed() const override { return task_->was_killed; }
  bool was_lost() const override { return task_->was_lost; }
  int news() const override { return -1; }
  int64_t process() const override { return 0; }

 private:
  std::mutex& mutex_;
  const std::shared_ptr<Task> task_;
};

WorkerServer::WorkerServer(const Address& address, ServedStudy study)
    : study_(std::move(study)), listening_(listen_at(address)), port_(port_of(listening_)) {
  thread_ = std::thread([this] { serve(); });
}

WorkerServer::~WorkerServer() { end("the tuner has ended"); }

void WorkerServer::end(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_ending_)
      for (const auto& place : known_) place->connection.send({{"type", "bye"}, {"why", why}});
    is_ending_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

int64_t WorkerServer::places() const {
  const std::lock_guard lock(mutex_);
  return std::count_if(known_.begin(), known_.end(), [](const auto& place) {
    return place->stage == Place::Stage::free || place->stage == Place::Stage::busy;
  });
}

int64_t WorkerServer::free_places() const {
  const std::lock_guard lock(mutex_);
  return std::count_if(known_.begin(), known_.end(),
                       [](const auto& place) { return place->stage == Place::Stage::free; });
}

std::vector<std::string> WorkerServer::notes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(notes_, {});
}

int64_t WorkerServer::used_memory(const std::string& worker) const {
  int64_t bytes = 0;
  for (const auto& place : known_)
    if (place->worker == worker && place->task) bytes += place->task->job.memory;
  return bytes;
}

/// A worker that trains nothing takes any trial, as the pool of a host does.
WorkerServer::Place* WorkerServer::place_for(int64_t memory) {
  for (const auto& place : known_) {
    if (place->stage != Place::Stage::free) continue;
    const int64_t used = used_memory(place->worker);
    if (used == 0 || used + memory <= place->memory) return place.get();
  }
  return nullptr;
}

std::unique_ptr<Training> WorkerServer::train(const TrainingJob& job) {
  const std::lock_guard lock(mutex_);
  Place* place = place_for(job.memory);
  if (place == nullptr) return nullptr;
  auto task = std::make_shared<Task>();
  task->job = job;
  const std::string recipe = job.goes_on ? "" : read_text(job.recipe);
  if (job.goes_on) place->connection.send_folder(job.run);
  place->connection.send({{"type", "train"},
                          {"trial", job.trial},
                          {"recipe", recipe},
                          {"goes_on", job.goes_on},
                          {"options", job.options}});
  place->connection.receive_into(task->received());
  place->task = task;
  place->stage = Place::Stage::busy;
  return std::make_unique<TrainingThere>(mutex_, std::move(task));
}

void WorkerServer::serve() {
  double ending_since = -1;
  while (true) {
    std::vector<pollfd> waiting = {{listening_.get(), POLLIN, 0}};
    {
      const std::lock_guard lock(mutex_);
      const double now = steady_seconds();
      if (is_ending_ && ending_since < 0) ending_since = now;
      if (!is_ending_) accept_all();
      for (const auto& place : known_) attend(*place, now);
      std::erase_if(known_, [](const auto& place) { return place->connection.is_lost(); });
      const bool is_told =
          std::all_of(known_.begin(), known_.end(), [](const auto& place) { return place->connection.is_sent(); });
      if (is_ending_ && (is_told || now - ending_since > kToldSeconds)) return;
      for (const auto& place : known_)
        waiting.push_back({place->connection.socket(),
                           static_cast<short>(place->connection.wants_to_write() ? POLLIN | POLLOUT : POLLIN), 0});
    }
    poll(waiting.data(), waiting.size(), kPollMilliseconds);
  }
}

void WorkerServer::accept_all() {
  while (known_.size() < kMostKnown) {
    Socket socket = accept_next(listening_);
    if (socket.get() < 0) return;
    known_.push_back(std::make_unique<Place>(std::move(socket), study_.silence_seconds, steady_seconds()));
    known_.back()->connection.send(
        {{"type", "hello"}, {"protocol", kProtocol}, {"weft", version()}, {"nonce", known_.back()->nonce}});
  }
}

void WorkerServer::attend(Place& place, double now) {
  Connection& connection = place.connection;
  if (place.task && place.task->is_stop_wanted && !std::exchange(place.task->is_stop_sent, true))
    connection.send({{"type", "stop"}});
  connection.pump(now);
  while (const std::optional<Message> message = connection.next()) {
    try {
      take(place, *message);
    } catch (const Message::exception&) {
      refuse(place, "it does not speak as weft does");
    } catch (const std::exception& error) {  // of files of this host: what the trial has reached cannot be kept
      if (place.task) place.task->output += fmt::format("\nweft: {}\n", error.what());
      refuse(place, error.what());
    }
    if (place.stage == Place::Stage::leaving && !place.task) break;
  }
  const bool is_known = place.stage != Place::Stage::greeting && place.stage != Place::Stage::checking;
  if (!is_known && now - place.since > kGreetingSeconds) refuse(place, "it has not been ready for too long");
  if (connection.is_lost()) lose(place);
}

void WorkerServer::refuse(Place& place, const std::string& why) {
  notes_.push_back(fmt::format("the worker on {} is refused: {}", place.host, why));
  place.connection.send({{"type", "refused"}, {"why", why}});
  place.stage = Place::Stage::leaving;
}

void WorkerServer::greet(Place& place, const Message& message) {
  const std::string nonce = message.at("nonce").get<std::string>();
  if (!equal_secrets(message.at("proof").get<std::string>(), proof_of(Side::worker, study_.token, place.nonce, nonce)))
    return refuse(place, "its token is not that of the study; give it the file `token` of the study's folder");
  place.host = message.at("host").get<std::string>();
  place.worker = place.host + " " + message.at("process").get<std::string>();
  place.memory = message.at("memory").get<int64_t>();
  const std::string trouble = version_trouble(std::string(version()), kProtocol, message.at("weft").get<std::string>(),
                                              message.at("protocol").get<int>());
  if (!trouble.empty()) return refuse(place, trouble);
  place.connection.allow_long_messages();
  place.connection.allow_silence(true);  // until it has opened its data, within kGreetingSeconds
  place.connection.send({{"type", "welcome"},
                         {"proof", proof_of(Side::tuner, study_.token, place.nonce, nonce)},
                         {"study", study_.name},
                         {"recipe", study_.recipe},
                         {"set", study_.set},
                         {"threads", study_.threads},
                         {"data", study_.data}});
  place.stage = Place::Stage::checking;
}

void WorkerServer::take(Place& place, const Message& message) {
  const std::string type = message.at("type").get<std::string>();
  if (place.stage == Place::Stage::greeting && type == "hello") return greet(place, message);
  if (type == "refused") {
    notes_.push_back(fmt::format("the worker on {} cannot work: {}", place.host, message.at("why").get<std::string>()));
    place.stage = Place::Stage::leaving;
  } else if (place.stage == Place::Stage::checking && type == "ready") {
    place.connection.allow_silence(false);
    const bool is_new = std::none_of(known_.begin(), known_.end(), [&](const auto& other) {
      return other.get() != &place && other->worker == place.worker && other->stage != Place::Stage::checking;
    });
    if (is_new) notes_.push_back(fmt::format("a worker on {} has come", place.host));
    place.stage = Place::Stage::free;
  } else if (type == "leaving") {
    if (place.stage == Place::Stage::free) place.stage = Place::Stage::leaving;
  } else if (place.task && type == "metrics") {
    take_metrics(*place.task, message);
  } else if (place.task && type == "folder") {
    place.task->has_folder = true;
  } else if (place.task && type == "ended") {
    finish(place, message);
  } else {
    refuse(place, "it does not speak as weft does");
  }
}

/// As the run directory has them at the worker, so that schedulers and pictures see the trial as one of this host.
void WorkerServer::take_metrics(Task& task, const Message& message) const {
  const fs::path file = task.job.run / "metrics.jsonl";
  const auto at = message.at("at").get<uint64_t>();
  make_directories(task.job.run);
  std::ofstream(file, std::ios::app).flush();
  if (fs::file_size(file) < at) fail(ErrorKind::data, "it has left out lines of its metrics");
  fs::resize_file(file, at);
  std::ofstream stream(file, std::ios::binary | std::ios::app);
  stream << message.at("text").get<std::string>();
  stream.flush();
  if (!stream) fail(ErrorKind::io, "cannot write '{}'; make room there", file.string());
}

void WorkerServer::finish(Place& place, const Message& message) {
  Task& task = *place.task;
  if (task.has_folder) take_place(task.received(), task.job.run);
  task.output += message.at("output").get<std::string>();
  task.code = message.at("code").get<int>();
  task.was_killed = message.at("was_killed").get<bool>();
  task.has_ended = true;
  place.connection.send({{"type", "kept"}});
  place.task.reset();
  place.stage = message.value("leaves", false) ? Place::Stage::leaving : Place::Stage::free;
}

void WorkerServer::lose(Place& place) {
  if (place.task) {
    notes_.push_back(fmt::format("the worker on {} is lost ({}); trial {} goes to another one", place.host,
                                 place.connection.why(), place.task->job.trial));
    std::error_code code;
    fs::remove_all(place.task->received(), code);
    place.task->was_lost = place.task->has_ended = true;
    place.task.reset();
  } else if (place.stage == Place::Stage::free) {
    notes_.push_back(fmt::format("the worker on {} has gone", place.host));
  }
}

}  // namespace weft::tune
