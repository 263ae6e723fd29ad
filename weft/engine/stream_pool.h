// Several streams over one engine, each on a thread of its own: with a device of one thread and a stream per core for
// the most throughput, with a device of all cores and one stream for the least latency.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "weft/engine/engine.h"
#include "weft/tensor/tensor.h"

namespace weft::engine {

/// The rows of one request after its last run, or why there are none.
struct Answer {
  std::vector<Tensor> outputs;  // in the order of DeployedModel::outputs
  std::exception_ptr error;     // null: it went well
  std::vector<double> seconds;  // of each run itself

  /// Throws the error where there is one.
  void check() const {
    if (error) std::rethrow_exception(error);
  }
};

class StreamPool {
 public:
  static constexpr int64_t kMostThreads = 16384;  // of all streams: more than any machine has cores

  /// Keeps a reference to the engine. Each stream takes as many threads as the engine's device has. With `pins`, each
  /// of these threads stays on a core of its own as long as there are cores, of those that the caller may use.
  /// Error(usage) for no streams or more than kMostThreads threads; Error(io) where the system starts no more.
  StreamPool(Engine& engine, int streams, bool pins = true);
  /// Waits for what was asked for.
  ~StreamPool();
  StreamPool(const StreamPool&) = delete;
  StreamPool& operator=(const StreamPool&) = delete;

  /// A run with these inputs, in the order of DeployedModel::inputs, as soon as a stream is free; requests begin in
  /// their order. The inputs are kept until then, and say the size of the batch. Thread-safe. With several `runs`, to
  /// measure what they take, the stream runs and reads the outputs again and again.
  std::future<Answer> submit(std::vector<Tensor> inputs, int64_t runs = 1);

  /// Any number of rows, cut into runs of at most `batch` over all streams; the outputs in the order of the rows.
  /// Error(usage) where rows cannot be told apart: an input or output whose first dimension is not the batch's, or a
  /// rest of rows for which the model has no graph.
  std::vector<Tensor> run_rows(const std::vector<Tensor>& inputs, int64_t batch);

  int streams() const { return static_cast<int>(threads_.size()); }
  /// Of all streams, as planned.
  int64_t arena_bytes() const;

 private:
  struct Request {
    std::vector<Tensor> inputs;
    int64_t runs = 1;
    std::promise<Answer> answer;
  };
  void start(size_t index, const std::vector<int>& cores);
  /// Runs what was asked for, then ends the threads.
  void stop();
  void work(size_t index, const std::vector<int>& cores);
  Answer answer_of(Stream& stream, const Request& request) const;
  void read_outputs(const Stream& stream, std::vector<Tensor>& outputs) const;
  /// Error(usage) where the inputs are not those of the model; the size of their batch.
  int64_t batch_of(const std::vector<Tensor>& inputs) const;

  Engine& engine_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> requests_;
  bool ends_ = false;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::thread> threads_;
};

}  // namespace weft::engine
