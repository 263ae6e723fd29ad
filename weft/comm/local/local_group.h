// A group of ranks that are threads of one process, on hosts that are names alone: for tests and for programs that want
// several ranks without a launcher.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"

namespace weft::comm {

class LocalGroup {
 public:
  explicit LocalGroup(const std::vector<std::string>& host_of_rank);
  ~LocalGroup();
  LocalGroup(const LocalGroup&) = delete;
  LocalGroup& operator=(const LocalGroup&) = delete;

  int size() const;
  /// Lives as long as the group.
  Communicator& communicator(int rank);

  /// As if the rank had been killed or stopped: it gives no sign of life from now on, its messages under way are lost,
  /// and whatever it calls throws Error(communication). Any thread may call it.
  void silence(int rank);

 private:
  struct Impl;
  class Rank;
  std::unique_ptr<Impl> impl_;
};

/// Calls body(communicator) on a thread per rank and waits for all. A rank whose body throws falls silent. Returns what
/// each threw: its message, or an empty text.
std::vector<std::string> errors_of_ranks(LocalGroup& group, const std::function<void(Communicator&)>& body);
/// The same on a new group; throws what the rank threw that failed first.
void run_ranks(const std::vector<std::string>& host_of_rank, const std::function<void(Communicator&)>& body);

}  // namespace weft::comm
