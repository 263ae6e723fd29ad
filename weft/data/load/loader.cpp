// Workers claim parts of tickets: ticket k is the k-th batch after start() and is made in slot k modulo the number of
// slots. One mutex guards tickets and slot states; each part of a slot belongs to the worker that fills it, the whole
// of it to the one that ends the last part, then to the consumer until it asks for the next one.
#include "weft/data/load/loader.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/parallel.h"
#include "weft/data/load/make_batch.h"

namespace weft::data {

namespace {

struct Slot : UnfinishedBatch {
  int parts_left = 0;  // that are not made yet
  double seconds = 0;  // that workers have spent on it
  bool ready = false;
  int64_t failed_row = -1;  // the first that could not be made
  ErrorKind error_kind = ErrorKind::internal;
  std::string error;
};

/// Rows of a batch that one worker makes at once.
struct Part {
  int64_t begin = 0, end = 0;
};

constexpr double kNewShare = 0.1;  // of a new measurement in what is known

/// So many that workers share a batch, and so few that claiming them takes no time. Of a smaller batch some are empty.
int parts_of(const DatasetInfo& info, int64_t rows) {
  constexpr int64_t kMostParts = 16, kElementsOfPart = 1 << 16;
  const int64_t by_size = rows * info.sample_shape.elements() / kElementsOfPart;
  return static_cast<int>(std::clamp<int64_t>(info.decoded ? rows : by_size, 1, std::min(rows, kMostParts)));
}

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

struct Loader::Impl {
  Impl(const Dataset& dataset, LoaderOptions given)
      : make(dataset, std::move(given)),
        options(make.options()),
        parts(parts_of(dataset.info(), make.most_rows())),
        active(options.workers) {}
  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    claimable.notify_all();
    for (std::thread& worker : workers) worker.join();
  }

  void begin(Slot& slot, int64_t ticket) const;
  void fill(Slot& slot, const Part& part, BatchMaker::Scratch& scratch) const;
  void finish(Slot& slot) const;
  void ask_ahead(int64_t ticket, const BatchPieces& pieces, const Part& part) const;
  /// Of a ticket.
  const BatchPieces& pieces_at(int64_t ticket) const { return next && ticket >= next->ticket ? next->pieces : pieces; }
  void note_error(Slot& slot, int64_t row, ErrorKind kind, std::string text) const;
  void make_rest(Slot& slot, BatchMaker::Scratch& scratch) const;
  Part part(int number, int64_t count) const {
    const auto [from, to] = split_range(count, number, parts);
    return {from, to};
  }
  bool may_claim(int worker) const {
    return running && worker < active && claimed < total && claimed - consumed < static_cast<int64_t>(slots.size());
  }
  /// A quarter of the slots is free: workers that wake for a few small batches at once disturb the steps less often.
  bool runs_low() const { return 4 * (claimed - consumed) <= 3 * static_cast<int64_t>(slots.size()); }
  void work(int worker);
  void measure_step(double now);
  void stop_running(std::unique_lock<std::mutex>& lock) {
    running = false;
    idle.wait(lock, [&] { return busy == 0; });
  }

  const BatchMaker make;
  const LoaderOptions& options;
  const int parts;  // of a batch

  BatchPieces share_of(int64_t first_grain, int64_t grains) const {
    check(first_grain >= 0 && grains >= 1 && first_grain + grains <= options.grains,
          "a share is of the grains of a batch");
    return {first_grain, first_grain + grains, options.grains};
  }

  /// What holds from a ticket on.
  struct Change {
    int64_t ticket = 0;
    BatchPieces pieces;
  };
  BatchPieces pieces = pieces_of(options);  // those of this share
  std::optional<Change> next = {};          // ordered last

  mutable std::mutex mutex;
  std::condition_variable claimable, filled, idle;
  std::vector<Slot> slots;
  std::vector<std::thread> workers;
  bool running = false, stopping = false;
  int active;             // workers that may claim
  int busy = 0;           // workers that fill a slot now
  int part_claimed = 0;   // parts of the ticket `claimed` that workers have taken
  int64_t first = 0;      // the first batch since start(), counted over all epochs
  int64_t total = 0;      // tickets there are
  int64_t claimed = 0;    // tickets of which workers have taken all parts
  int64_t delivered = 0;  // tickets that next() has handed out
  int64_t consumed = 0;   // tickets whose slots are free again
  double waited_seconds = 0;
  BatchMaker::Scratch own_scratch = make.make_scratch();  // of next(), where there are no workers
  double batch_seconds = 0, step_seconds = 0;             // of late, measured; 0: not yet
  double delivered_at = 0;                                // when next() returned; 0: it has not
};

void Loader::Impl::begin(Slot& slot, int64_t ticket) const {
  const BatchCourse::Place place = make.course().place_of(first + ticket);
  make.begin(slot, place.epoch, place.batch, pieces_at(ticket));
  slot.parts_left = parts;
  slot.seconds = 0;
  slot.failed_row = -1;
}

/// Rows of one part; other parts of the slot may be made by others meanwhile.
void Loader::Impl::fill(Slot& slot, const Part& rows, BatchMaker::Scratch& scratch) const {
  const Permutation order = make.order_of(slot.batch.epoch);
  for (int64_t row = rows.begin; row < rows.end; ++row) try {
      make.fill_row(slot, row, order, scratch);
    } catch (const Error& error) {
      return note_error(slot, row, error.kind(), error.what());
    } catch (const std::exception& error) {
      return note_error(slot, row, ErrorKind::internal,
                        fmt::format("[loader] '{}': {}", make.dataset().info().name, error.what()));
    }
}

void Loader::Impl::finish(Slot& slot) const {
  if (slot.failed_row < 0) try {
      make.finish(slot);
    } catch (const std::exception& error) {
      note_error(slot, 0, ErrorKind::internal, error.what());
    }
}

/// The first row's error is the batch's, whichever worker is first.
void Loader::Impl::note_error(Slot& slot, int64_t row, ErrorKind kind, std::string text) const {
  const std::lock_guard lock(mutex);
  if (slot.failed_row >= 0 && slot.failed_row <= row) return;
  slot.failed_row = row;
  slot.error_kind = kind;
  slot.error = std::move(text);
}

/// Files of the same part of the batch after: the system reads them while this one is decoded.
void Loader::Impl::ask_ahead(int64_t ticket, const BatchPieces& of_next, const Part& rows) const {
  if (ticket + 1 >= total) return;
  const BatchCourse::Place place = make.course().place_of(first + ticket + 1);
  make.will_need(place.epoch, place.batch, of_next, rows.begin, rows.end);
}

/// Of a batch that has begun.
void Loader::Impl::make_rest(Slot& slot, BatchMaker::Scratch& scratch) const {
  fill(slot, {0, slot.rows}, scratch);
  finish(slot);
}

void Loader::Impl::work(int worker) {
  BatchMaker::Scratch scratch = make.make_scratch();
  std::unique_lock lock(mutex);
  for (;;) {
    claimable.wait(lock, [&] { return stopping || may_claim(worker); });
    if (stopping) return;
    const int64_t ticket = claimed;
    Slot& slot = slots[static_cast<size_t>(ticket) % slots.size()];
    if (part_claimed == 0) begin(slot, ticket);
    const BatchPieces of_next = pieces_at(ticket + 1);
    const Part rows = part(part_claimed, slot.rows);
    if (++part_claimed == parts) {
      part_claimed = 0;
      ++claimed;
    }
    ++busy;
    lock.unlock();
    const double begun = now_seconds();
    ask_ahead(ticket, of_next, rows);
    fill(slot, rows, scratch);
    lock.lock();
    if (--slot.parts_left == 0) {
      lock.unlock();
      finish(slot);
      lock.lock();
      slot.ready = true;
      const double seconds = slot.seconds + now_seconds() - begun;
      batch_seconds = batch_seconds == 0 ? seconds : batch_seconds + kNewShare * (seconds - batch_seconds);
      filled.notify_one();
    } else {
      slot.seconds += now_seconds() - begun;
    }
    --busy;
    idle.notify_one();
  }
}

/// Between two calls of next() the consumer has made a step.
void Loader::Impl::measure_step(double now) {
  if (delivered_at > 0) {
    const double seconds = now - delivered_at;
    if (step_seconds == 0)
      step_seconds = seconds;
    else  // an evaluation or a checkpoint may lie between two steps
      step_seconds += kNewShare * (std::min(seconds, 4 * step_seconds) - step_seconds);
  }
  if (!options.automatic || step_seconds == 0 || batch_seconds == 0) return;
  const int before = active;
  active = needed_workers(batch_seconds, step_seconds, options.workers);
  if (active > before) claimable.notify_all();
}

Loader::Loader(const Dataset& dataset, LoaderOptions options)
    : impl_(std::make_unique<Impl>(dataset, std::move(options))) {
  // One slot is in the consumer's hands while `prefetch` others are made.
  impl_->slots.resize(impl_->options.workers == 0 ? 1 : static_cast<size_t>(impl_->options.prefetch) + 1);
  for (Slot& slot : impl_->slots) static_cast<UnfinishedBatch&>(slot) = impl_->make.allocate_largest();
  for (int worker = 0; worker < impl_->options.workers; ++worker) try {
      impl_->workers.emplace_back([impl = impl_.get(), worker] { impl->work(worker); });
    } catch (const std::system_error& error) {
      fail(ErrorKind::io, "[loader] cannot start worker {} of {}: {}; choose fewer workers", worker + 1,
           impl_->options.workers, error.what());
    }
}

Loader::~Loader() = default;

const Dataset& Loader::dataset() const { return impl_->make.dataset(); }

int64_t Loader::steps_per_epoch() const { return impl_->make.course().batches_of(0); }

void Loader::start(int64_t epoch, int64_t step, int64_t stop_epoch) {
  Impl& impl = *impl_;
  const BatchCourse& course = impl.make.course();
  check(epoch >= 0 && step >= 0 && step <= course.batches_of(epoch), "a loader starts at a step of an epoch");
  std::unique_lock lock(impl.mutex);
  impl.stop_running(lock);
  impl.first = course.batches_before(epoch) + step;
  impl.total = std::max<int64_t>(0, course.batches_before(stop_epoch) - impl.first);
  impl.claimed = impl.delivered = impl.consumed = 0;
  impl.part_claimed = 0;
  if (impl.next) impl.pieces = std::exchange(impl.next, std::nullopt)->pieces;
  impl.delivered_at = 0;
  for (Slot& slot : impl.slots) slot.ready = false;
  impl.running = true;
  impl.claimable.notify_all();
}

const Batch& Loader::next() {
  Impl& impl = *impl_;
  std::unique_lock lock(impl.mutex);
  check(impl.running, "Loader::start() comes before next()");
  check(impl.delivered < impl.total, "Loader::next() past stop_epoch");
  const double called = now_seconds();
  impl.measure_step(called);
  const int64_t ticket = impl.delivered++;
  Slot& slot = impl.slots[static_cast<size_t>(ticket) % impl.slots.size()];
  if (impl.options.workers == 0) {
    lock.unlock();  // nobody else is there
    impl.begin(slot, ticket);
    impl.make_rest(slot, impl.own_scratch);
    lock.lock();
    impl.waited_seconds += now_seconds() - called;
  } else {
    if (ticket > 0) {  // the batch handed out before is free now
      impl.slots[static_cast<size_t>(ticket - 1) % impl.slots.size()].ready = false;
      impl.consumed = ticket;
      if (impl.runs_low()) impl.claimable.notify_all();
    }
    if (!slot.ready) {
      impl.filled.wait(lock, [&] { return slot.ready; });
      impl.waited_seconds += now_seconds() - called;
    }
  }
  impl.delivered_at = now_seconds();
  if (slot.failed_row >= 0) throw Error(slot.error_kind, slot.error);
  return slot.batch;
}

void Loader::change_share(int64_t first, int64_t grains, int64_t later) {
  Impl& impl = *impl_;
  const BatchPieces changed = impl.share_of(first, grains);
  const std::lock_guard lock(impl.mutex);
  check(impl.running && impl.delivered > 0 && later >= batches_ahead(), "batches under way keep their rows");
  check(!impl.next || impl.next->ticket <= impl.delivered, "one change of the share at a time");
  if (impl.next) impl.pieces = impl.next->pieces;
  impl.next = Impl::Change{impl.delivered + later, changed};
}

void Loader::set_share(int64_t first, int64_t grains) {
  Impl& impl = *impl_;
  std::unique_lock lock(impl.mutex);
  impl.stop_running(lock);
  impl.pieces = impl.share_of(first, grains);
  impl.next.reset();
}

int64_t Loader::batches_ahead() const { return static_cast<int64_t>(impl_->slots.size()) - 1; }

Batch Loader::load_batch(int64_t epoch, int64_t step) const {
  const BatchCourse& course = impl_->make.course();
  check(epoch >= 0 && step >= 0 && step < course.batches_of(epoch), "a batch of an epoch");
  Slot slot;
  static_cast<UnfinishedBatch&>(slot) = impl_->make.allocate(epoch, step);
  BatchMaker::Scratch scratch = impl_->make.make_scratch();
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->make.begin(slot, epoch, step, impl_->pieces_at(impl_->delivered));
  }
  impl_->make_rest(slot, scratch);
  if (slot.failed_row >= 0) throw Error(slot.error_kind, slot.error);
  return std::move(slot.batch);
}

Tensor Loader::load_sample(int64_t index, int64_t epoch) const { return impl_->make.sample(index, epoch); }

int Loader::active_workers() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->active;
}

int Loader::needed_workers(double batch_seconds, double step_seconds, int most) {
  constexpr double kReserve = 1.2;  // batches differ
  if (most <= 1 || step_seconds <= 0) return most;
  const double needed = std::ceil(kReserve * batch_seconds / step_seconds);
  return static_cast<int>(std::clamp(needed, 1.0, static_cast<double>(most)));
}

double Loader::wait_seconds() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->waited_seconds;
}

}  // namespace weft::data
