#include "weft/engine/stream_pool.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <system_error>

#include "weft/base/error.h"
#include "weft/base/pin_threads.h"

namespace weft::engine {

namespace {

/// Some rows of a plain tensor, without a copy; `owner` keeps the memory.
Tensor rows_of(const std::shared_ptr<const Tensor>& owner, int64_t first, int64_t count) {
  std::vector<int64_t> dims = owner->shape().dims();
  const int64_t row_bytes = owner->bytes() / dims[0];
  dims[0] = count;
  auto* begin = const_cast<std::byte*>(owner->data_as<std::byte>()) + first * row_bytes;  // only read
  return Tensor::adopt({owner->dtype(), Shape(dims), {}}, std::shared_ptr<std::byte>(owner, begin));
}

/// The rows of one output, one answer after the other; `counts` has the rows of each request.
Tensor joined_rows(const std::vector<Answer>& answers, const std::vector<int64_t>& counts, size_t index,
                   const std::string& name) {
  std::vector<int64_t> dims = answers[0].outputs[index].shape().dims();
  const int64_t of_each = dims.empty() ? 0 : dims[0] / counts[0];
  int64_t rows = 0;
  for (size_t at = 0; at < answers.size(); ++at) {
    const Shape& shape = answers[at].outputs[index].shape();
    if (shape.rank() == 0 || shape[0] != of_each * counts[at])
      fail(ErrorKind::usage, "the rows of '{}' cannot be told apart; run the whole input at once", name);
    rows += shape[0];
  }
  dims[0] = rows;
  Tensor all(answers[0].outputs[index].dtype(), Shape(dims));
  auto* to = all.data_as<std::byte>();
  for (const Answer& answer : answers) {
    const Tensor& piece = answer.outputs[index];
    std::memcpy(to, piece.data(), static_cast<size_t>(piece.bytes()));
    to += piece.bytes();
  }
  return all;
}

/// The cores of stream `index`: `threads` of them, the next where all are taken.
std::vector<int> cores_of(const std::vector<int>& cores, size_t index, int threads) {
  std::vector<int> own;
  for (int thread = 0; !cores.empty() && thread < threads; ++thread)
    own.push_back(cores[(index * static_cast<size_t>(threads) + static_cast<size_t>(thread)) % cores.size()]);
  return own;
}

}  // namespace

StreamPool::StreamPool(Engine& engine, int streams, bool pins) : engine_(engine) {
  const int threads = engine.device().threads();
  if (streams < 1) fail(ErrorKind::usage, "{} streams run nothing; ask for 1 or more", streams);
  if (int64_t{streams} * threads > kMostThreads)
    fail(ErrorKind::usage, "{} streams of {} thread{} are more than {} threads; ask for fewer", streams, threads,
         threads == 1 ? "" : "s", kMostThreads);
  const std::vector<int> cores = pins ? allowed_cores() : std::vector<int>{};
  for (int index = 0; index < streams; ++index) streams_.push_back(std::make_unique<Stream>(engine));
  threads_.reserve(streams_.size());
  for (size_t index = 0; index < streams_.size(); ++index) start(index, cores_of(cores, index, threads));
}

StreamPool::~StreamPool() { stop(); }

void StreamPool::start(size_t index, const std::vector<int>& cores) {
  try {
    threads_.emplace_back([this, index, cores] { work(index, cores); });
  } catch (const std::system_error& error) {
    stop();
    fail(ErrorKind::io, "the system starts no thread for stream {} of {} ({}); ask for fewer streams", index + 1,
         streams_.size(), error.what());
  } catch (...) {
    stop();
    throw;
  }
}

void StreamPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

std::future<Answer> StreamPool::submit(std::vector<Tensor> inputs, int64_t runs) {
  Request request{std::move(inputs), runs, {}};
  std::future<Answer> answer = request.answer.get_future();
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(request));
  }
  changed_.notify_one();
  return answer;
}

void StreamPool::work(size_t index, const std::vector<int>& cores) {
  pin_team(engine_.device().threads(), cores);
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ends_ || !requests_.empty(); });
    if (requests_.empty()) return;
    Request request = std::move(requests_.front());
    requests_.pop_front();
    lock.unlock();
    request.answer.set_value(answer_of(*streams_[index], request));
  }
}

Answer StreamPool::answer_of(Stream& stream, const Request& request) const {
  Answer answer;
  try {
    const int64_t batch = batch_of(request.inputs);
    for (size_t index = 0; index < request.inputs.size(); ++index)
      stream.set_input(index, request.inputs[index].data());
    for (int64_t run = 0; run < request.runs; ++run) {
      const auto begin = std::chrono::steady_clock::now();
      stream.run(batch);
      answer.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      read_outputs(stream, answer.outputs);
    }
  } catch (...) {
    answer = {{}, std::current_exception(), {}};
  }
  return answer;
}

/// Into the tensors, which are made where there are none yet.
void StreamPool::read_outputs(const Stream& stream, std::vector<Tensor>& outputs) const {
  for (size_t index = 0; index < engine_.model().outputs.size(); ++index)
    if (index == outputs.size())
      outputs.push_back(stream.output(index));
    else
      stream.read_output(index, {outputs[index].data_as<std::byte>(), static_cast<size_t>(outputs[index].bytes())});
}

int64_t StreamPool::batch_of(const std::vector<Tensor>& inputs) const {
  const std::vector<Port>& ports = engine_.model().inputs;
  if (inputs.size() != ports.size())
    fail(ErrorKind::usage, "the model reads {} inputs, {} are given", ports.size(), inputs.size());
  const auto fits = [&](int64_t batch) {
    for (size_t index = 0; index < inputs.size(); ++index)
      if (inputs[index].type() != engine_.input_type(index, batch)) return false;
    return true;
  };
  std::vector<int64_t> candidates = engine_.batches();
  if (candidates.empty() && inputs[0].shape().rank() > 0) candidates = {std::max<int64_t>(1, inputs[0].shape()[0])};
  for (const int64_t batch : candidates)
    if (fits(batch)) return batch;
  std::string wanted, given;
  for (size_t index = 0; index < inputs.size(); ++index) {
    wanted += fmt::format("{}'{}' {}", index > 0 ? ", " : "", ports[index].name, ports[index].type);
    given += fmt::format("{}{}", index > 0 ? ", " : "", to_string(inputs[index].type()));
  }
  fail(ErrorKind::shape, "the model reads {}, not {}", wanted, given);
}

std::vector<Tensor> StreamPool::run_rows(const std::vector<Tensor>& inputs, int64_t batch) {
  if (inputs.size() != engine_.model().inputs.size())
    fail(ErrorKind::usage, "the model reads {} inputs, {} are given", engine_.model().inputs.size(), inputs.size());
  std::vector<std::shared_ptr<const Tensor>> owners;
  for (size_t index = 0; index < inputs.size(); ++index) {
    const Shape& shape = inputs[index].shape();
    const TensorType wanted = engine_.input_type(index, batch);
    if (shape.rank() == 0 || shape[0] != inputs[0].shape()[0] || wanted.shape.rank() == 0 || wanted.shape[0] != batch)
      fail(ErrorKind::usage, "the rows of '{}' cannot be told apart; run the whole input at once",
           engine_.model().inputs[index].name);
    owners.push_back(std::make_shared<const Tensor>(inputs[index]));
  }
  const int64_t rows = inputs[0].shape()[0];
  std::vector<std::future<Answer>> futures;
  std::vector<int64_t> counts;
  for (int64_t first = 0; first < rows; first += batch) {
    counts.push_back(std::min(batch, rows - first));
    std::vector<Tensor> part;
    for (const auto& owner : owners) part.push_back(rows_of(owner, first, counts.back()));
    futures.push_back(submit(std::move(part)));
  }
  std::vector<Answer> answers;
  for (auto& future : futures) answers.push_back(future.get());  // of all, also where one fails: they read the rows
  for (const Answer& answer : answers) answer.check();
  std::vector<Tensor> outputs;
  for (size_t index = 0; rows > 0 && index < engine_.model().outputs.size(); ++index)
    outputs.push_back(joined_rows(answers, counts, index, engine_.model().outputs[index].name));
  return outputs;
}

int64_t StreamPool::arena_bytes() const {
  int64_t bytes = 0;
  for (const auto& stream : streams_) bytes += stream->arena_bytes();
  return bytes;
}

}  // namespace weft::engine
