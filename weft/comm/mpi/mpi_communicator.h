// The seam over Open MPI, or any MPI from version 3 on.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "weft/comm/collectives.h"
#include "weft/comm/communicator.h"
#include "weft/comm/native_all_reduce.h"

namespace weft::comm {

class MpiCommunicator final : public Communicator, public NativeAllReduce {
 public:
  /// Of all ranks that MPI started, all of which construct it. MPI must have been initialised for calls from several
  /// threads, one at a time.
  MpiCommunicator();
  ~MpiCommunicator() override;

  int rank() const override;
  const std::vector<Member>& members() const override;
  Ticket send(int peer, int tag, std::span<const std::byte> bytes) override;
  Ticket receive(int peer, int tag, std::span<std::byte> bytes) override;
  int64_t progress() override;
  bool is_done(Ticket ticket) override;
  using Communicator::share;
  std::shared_ptr<SharedMemory> share(int64_t bytes, const std::vector<int>& ranks) override;
  Ticket all_reduce(std::span<float> values) override;
  double seconds_silent(int peer) const override;
  void give_up() override;

  /// See MpiSession.
  bool claims_report();
  void run(CollectiveKind kind, std::span<float> values);
  /// No more signs of life, no more messages.
  void close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::comm
