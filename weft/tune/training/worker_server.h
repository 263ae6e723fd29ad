// A tuner's side of workers on other hosts: a thread that listens, knows the workers, and moves trials to and from
// them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "weft/tune/training/address.h"
#include "weft/tune/training/connection.h"
#include "weft/tune/training/handshake.h"
#include "weft/tune/training/training.h"

namespace weft::tune {

/// What workers must know and have.
struct ServedStudy {
  std::string name, token;
  std::string recipe;                 // TOML
  std::vector<std::string> set = {};  // assignments to its keys, for all trials
  std::string data;                   // what data.json says of its data (spec/data_description.h)
  int64_t threads = 1;                // of each trial
  double silence_seconds = kSilenceSeconds;
};

class WorkerServer {
 public:
  /// Error(io) where nobody can listen there.
  WorkerServer(const Address& address, ServedStudy study);
  /// As end().
  ~WorkerServer();
  WorkerServer(const WorkerServer&) = delete;
  WorkerServer& operator=(const WorkerServer&) = delete;

  const std::string& port() const { return port_; }
  /// Places at workers that are known, and how many of them train nothing now.
  int64_t places() const;
  int64_t free_places() const;
  /// At a worker with room for it beside its other trials; null: there is none now. Calls of the result do not wait for
  /// the network. It may be read until the server ends.
  std::unique_ptr<Training> train(const TrainingJob& job);
  /// Lines for the user since the last call: who came, who was refused, who was lost.
  std::vector<std::string> notes();
  /// Tells the workers why there is nothing left to do, and lets them go.
  void end(const std::string& why);

 private:
  struct Task;
  struct Place;
  class TrainingThere;

  void serve();
  void accept_all();
  void attend(Place& place, double now);
  void take(Place& place, const Message& message);
  void greet(Place& place, const Message& message);
  void take_metrics(Task& task, const Message& message) const;
  void finish(Place& place, const Message& message);
  void refuse(Place& place, const std::string& why);
  void lose(Place& place);
  int64_t used_memory(const std::string& worker) const;
  Place* place_for(int64_t memory);

  const ServedStudy study_;
  const Socket listening_;
  const std::string port_;
  mutable std::mutex mutex_;  // of all below
  std::vector<std::unique_ptr<Place>> known_;
  std::vector<std::string> notes_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace weft::tune
