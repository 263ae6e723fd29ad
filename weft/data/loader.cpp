// Workers claim tickets: ticket k is the k-th batch after start() and is made in slot k modulo the number of slots.
// One mutex guards tickets and slot states; the content of a slot belongs to the worker that fills it, then to the
// consumer until it asks for the next one.
#include "weft/data/loader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/rng.h"
#include "weft/data/augment_labels.h"
#include "weft/data/check_samples.h"
#include "weft/data/permutation.h"

namespace weft::data {

namespace {

struct Slot {
  Batch batch;
  std::vector<uint8_t> pixels;  // of one image as it is stored
  std::vector<float> scratch;
  std::vector<int32_t> labels;  // of a batch that is mixed, of pixels that are moved
  bool ready = false;
  bool failed = false;
  ErrorKind error_kind = ErrorKind::internal;
  std::string error;
};

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Where it is none, the loss would only become NaN.
void require_class(const DatasetInfo& info, int64_t index, int32_t label) {
  if (label >= 0 && label < info.classes) return;
  fail(ErrorKind::data, "'{}': sample {} has class {}, but there are {} classes, counted from 0; mend the labels",
       info.name, index, label, info.classes);
}

}  // namespace

struct Loader::Impl {
  Impl(const Dataset& set, LoaderOptions given)
      : dataset(set),
        options(std::move(given)),
        shuffle_key(mix(options.seed, hash_name("shuffle"))),
        pass_key(mix(options.seed, hash_name("pass"))) {
    const DatasetInfo& info = dataset.info();
    if (info.sample_dtype == DType::u8) normalization.emplace(options.statistics, info.sample_shape[0]);
  }
  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    claimable.notify_all();
    for (std::thread& worker : workers) worker.join();
  }

  int64_t steps_per_epoch() const {
    const int64_t size = dataset.size();
    return options.drop_last ? size / options.batch : (size + options.batch - 1) / options.batch;
  }

  void make_slot(Slot& slot) const;
  void fill(Slot& slot, int64_t epoch, int64_t step) const;
  void fill_target(Slot& slot, const SampleKey& key, int64_t epoch, std::span<uint8_t> target) const;
  void fill_image(Slot& slot, int64_t index, int64_t epoch, std::span<float> target) const;
  void fill_noting_errors(Slot& slot, int64_t ticket) const noexcept;
  bool may_claim() const {
    return running && claimed < total && claimed - consumed < static_cast<int64_t>(slots.size());
  }
  void work();
  void stop_running(std::unique_lock<std::mutex>& lock) {
    running = false;
    idle.wait(lock, [&] { return busy == 0; });
  }

  const Dataset& dataset;
  const LoaderOptions options;
  std::optional<Normalization> normalization;  // of images
  const uint64_t shuffle_key, pass_key;

  std::mutex mutex;
  std::condition_variable claimable, filled, idle;
  std::vector<Slot> slots;
  std::vector<std::thread> workers;
  bool running = false, stopping = false;
  int busy = 0;           // workers that fill a slot now
  int64_t first = 0;      // the first batch since start(), counted over all epochs
  int64_t total = 0;      // tickets there are
  int64_t claimed = 0;    // tickets that workers have taken
  int64_t delivered = 0;  // tickets that next() has handed out
  int64_t consumed = 0;   // tickets whose slots are free again
  double waited_seconds = 0;
};

void Loader::Impl::make_slot(Slot& slot) const {
  const DatasetInfo& info = dataset.info();
  const auto batched = [&](const Shape& shape) {
    std::vector<int64_t> dims = shape.dims();
    dims.insert(dims.begin(), options.batch);
    return Shape(std::move(dims));
  };
  slot.batch.samples = Tensor(batch_dtype(info), batched(info.sample_shape));
  slot.batch.targets = options.mix.on() ? Tensor(DType::f32, Shape{options.batch, info.classes})
                                        : Tensor(info.target_dtype, batched(info.target_shape));
  if (options.mix.on()) slot.labels.resize(static_cast<size_t>(options.batch));
  if (normalization) slot.pixels.resize(static_cast<size_t>(dataset.sample_bytes()));
}

void Loader::Impl::fill_image(Slot& slot, int64_t index, int64_t epoch, std::span<float> target) const {
  const Shape& shape = dataset.info().sample_shape;
  const AugmentChoice choice = draw_choice(options.augment, shape, options.seed, epoch, index);
  if (options.augment.resized_crop > 0) {
    std::shared_ptr<const Image> picture = dataset.picture(index);
    if (!picture) {
      dataset.get({.index = index}, slot.pixels);
      picture = std::make_shared<const Image>(Image{shape[0], shape[1], shape[2], slot.pixels});
    }
    const Region region = draw_resized_crop(options.augment, *picture, options.seed, epoch, index);
    const Image part = resize(cut_out(*picture, region), shape[1], shape[2]);
    return transform(part.pixels, shape, options.augment, choice, *normalization, target, slot.scratch);
  }
  dataset.get({.index = index}, slot.pixels);
  transform(slot.pixels, shape, options.augment, choice, *normalization, target, slot.scratch);
}

/// Classes of pixels move with them.
void Loader::Impl::fill_target(Slot& slot, const SampleKey& key, int64_t epoch, std::span<uint8_t> target) const {
  dataset.get_target(key, target);
  if (dataset.info().task != Task::segmentation || !options.augment.any()) return;
  const Shape& shape = dataset.info().sample_shape;
  const AugmentChoice choice = draw_choice(options.augment, shape, options.seed, epoch, key.index);
  Region region{0, 0, shape[1], shape[2]};
  if (options.augment.resized_crop > 0)
    region =
        draw_resized_crop(options.augment, Image{shape[0], shape[1], shape[2], {}}, options.seed, epoch, key.index);
  const std::span<int32_t> labels(reinterpret_cast<int32_t*>(target.data()), target.size() / sizeof(int32_t));
  transform_labels(labels, shape[1], shape[2], options.augment, choice, region, slot.labels);
}

void Loader::Impl::fill(Slot& slot, int64_t epoch, int64_t step) const {
  Batch& batch = slot.batch;
  const DatasetInfo& info = dataset.info();
  const int64_t begin = step * options.batch, size = dataset.size();
  batch.epoch = epoch;
  batch.step = step;
  batch.count = std::min(options.batch, size - begin);
  const Permutation order(size, mix(shuffle_key, static_cast<uint64_t>(epoch)));
  const uint64_t pass = mix(pass_key, static_cast<uint64_t>(epoch));
  const auto target_bytes = static_cast<size_t>(info.target_bytes());
  const bool has_classes = info.task == Task::classification && info.target_dtype == DType::i32 && !options.mix.on();
  const auto sample_bytes = static_cast<size_t>(batch.samples.bytes() / options.batch);
  auto* sample = batch.samples.data_as<uint8_t>();
  auto* target = batch.targets.data_as<uint8_t>();
  for (int64_t row = 0; row < batch.count; ++row, sample += sample_bytes, target += target_bytes) {
    const SampleKey key{options.shuffle ? order[begin + row] : begin + row, pass};
    if (normalization)
      fill_image(slot, key.index, epoch, {reinterpret_cast<float*>(sample), sample_bytes / sizeof(float)});
    else
      dataset.get(key, {sample, sample_bytes});
    if (options.mix.on())
      slot.labels[static_cast<size_t>(row)] = dataset.label(key.index);
    else
      fill_target(slot, key, epoch, {target, target_bytes});
    if (has_classes) require_class(info, key.index, *reinterpret_cast<const int32_t*>(target));
  }
  if (options.mix.on()) {
    check(batch.count == options.batch, "only whole batches are mixed");
    mix_batch(batch.samples, slot.labels, options.mix, options.seed, epoch, step, batch.targets);
    return;
  }
  const auto rest = static_cast<size_t>(options.batch - batch.count);
  std::memset(sample, 0, rest * sample_bytes);
  std::memset(target, 0, rest * target_bytes);
}

void Loader::Impl::fill_noting_errors(Slot& slot, int64_t ticket) const noexcept {
  const int64_t at = first + ticket;
  try {
    slot.failed = false;
    fill(slot, at / steps_per_epoch(), at % steps_per_epoch());
  } catch (const Error& error) {
    slot.failed = true;
    slot.error_kind = error.kind();
    slot.error = error.what();
  } catch (const std::exception& error) {
    slot.failed = true;
    slot.error_kind = ErrorKind::internal;
    slot.error = fmt::format("[loader] '{}': {}", dataset.info().name, error.what());
  }
}

void Loader::Impl::work() {
  std::unique_lock lock(mutex);
  for (;;) {
    claimable.wait(lock, [&] { return stopping || may_claim(); });
    if (stopping) return;
    const int64_t ticket = claimed++;
    Slot& slot = slots[static_cast<size_t>(ticket) % slots.size()];
    ++busy;
    lock.unlock();
    fill_noting_errors(slot, ticket);
    lock.lock();
    slot.ready = true;
    --busy;
    filled.notify_one();
    idle.notify_one();
  }
}

Loader::Loader(const Dataset& dataset, LoaderOptions options) {
  check_info(dataset.info());
  const std::string& name = dataset.info().name;
  if (options.batch < 1) fail(ErrorKind::usage, "[loader] batch {} is too small; at least 1", options.batch);
  if (options.batch > (int64_t{1} << 24))
    fail(ErrorKind::usage, "[loader] batch {} is absurdly large; at most {}", options.batch, int64_t{1} << 24);
  if (options.workers < 0 || options.workers > 1024)
    fail(ErrorKind::usage, "[loader] {} workers; want 0 to 1024", options.workers);
  if (options.prefetch < 1 || options.prefetch > 1024)
    fail(ErrorKind::usage, "[loader] prefetch of {} batches; want 1 to 1024", options.prefetch);
  if (options.mix.on() && !options.drop_last)
    fail(ErrorKind::usage, "[loader] mixup and cutmix want whole batches: drop_last");
  if (options.drop_last && dataset.size() < options.batch)
    fail(ErrorKind::usage, "[loader] '{}' has {} samples, fewer than one batch of {}; choose a smaller batch", name,
         dataset.size(), options.batch);
  const DatasetInfo& info = dataset.info();
  if (info.sample_dtype == DType::u8)
    check_options(options.augment, info.sample_shape);
  else if (options.augment.any() || options.mix.on())
    fail(ErrorKind::usage, "[augment] '{}' holds {}, and only images can be augmented; leave [augment] away", name,
         info.item());
  if (options.mix.on() && info.task != Task::classification)
    fail(ErrorKind::usage, "[augment] mixup and cutmix are for classes, '{}' is for {}; leave them away", name,
         name_of(info.task));
  impl_ = std::make_unique<Impl>(dataset, std::move(options));
  // One slot is in the consumer's hands while `prefetch` others are made.
  impl_->slots.resize(impl_->options.workers == 0 ? 1 : static_cast<size_t>(impl_->options.prefetch) + 1);
  for (Slot& slot : impl_->slots) impl_->make_slot(slot);
  for (int worker = 0; worker < impl_->options.workers; ++worker) try {
      impl_->workers.emplace_back([impl = impl_.get()] { impl->work(); });
    } catch (const std::system_error& error) {
      fail(ErrorKind::io, "[loader] cannot start worker {} of {}: {}; choose fewer workers", worker + 1,
           impl_->options.workers, error.what());
    }
}

Loader::~Loader() = default;

const Dataset& Loader::dataset() const { return impl_->dataset; }

int64_t Loader::steps_per_epoch() const { return impl_->steps_per_epoch(); }

void Loader::start(int64_t epoch, int64_t step, int64_t stop_epoch) {
  Impl& impl = *impl_;
  const int64_t steps = impl.steps_per_epoch();
  check(epoch >= 0 && step >= 0 && step <= steps, "a loader starts at a step of an epoch");
  std::unique_lock lock(impl.mutex);
  impl.stop_running(lock);
  impl.first = epoch * steps + step;
  const int64_t last_epoch = std::min(stop_epoch, std::numeric_limits<int64_t>::max() / steps);
  impl.total = std::max<int64_t>(0, last_epoch * steps - impl.first);
  impl.claimed = impl.delivered = impl.consumed = 0;
  for (Slot& slot : impl.slots) slot.ready = false;
  impl.running = true;
  impl.claimable.notify_all();
}

const Batch& Loader::next() {
  Impl& impl = *impl_;
  std::unique_lock lock(impl.mutex);
  check(impl.running, "Loader::start() comes before next()");
  check(impl.delivered < impl.total, "Loader::next() past stop_epoch");
  const int64_t ticket = impl.delivered++;
  Slot& slot = impl.slots[static_cast<size_t>(ticket) % impl.slots.size()];
  if (impl.options.workers == 0) {
    const double begin = now_seconds();
    impl.fill_noting_errors(slot, ticket);
    impl.waited_seconds += now_seconds() - begin;
  } else {
    if (ticket > 0) {  // the batch handed out before is free now
      impl.slots[static_cast<size_t>(ticket - 1) % impl.slots.size()].ready = false;
      impl.consumed = ticket;
      impl.claimable.notify_one();
    }
    if (!slot.ready) {
      const double begin = now_seconds();
      impl.filled.wait(lock, [&] { return slot.ready; });
      impl.waited_seconds += now_seconds() - begin;
    }
  }
  if (slot.failed) throw Error(slot.error_kind, slot.error);
  return slot.batch;
}

Batch Loader::load_batch(int64_t epoch, int64_t step) const {
  check(epoch >= 0 && step >= 0 && step < steps_per_epoch(), "a batch of an epoch");
  Slot slot;
  impl_->make_slot(slot);
  impl_->fill(slot, epoch, step);
  return std::move(slot.batch);
}

Tensor Loader::load_sample(int64_t index, int64_t epoch) const {
  const DatasetInfo& info = impl_->dataset.info();
  Tensor sample(batch_dtype(info), info.sample_shape);
  Slot slot;
  impl_->make_slot(slot);
  if (impl_->normalization) {
    impl_->fill_image(slot, index, epoch, {sample.data_as<float>(), static_cast<size_t>(sample.elements())});
  } else {
    const uint64_t pass = mix(impl_->pass_key, static_cast<uint64_t>(epoch));
    impl_->dataset.get({index, pass}, {sample.data_as<uint8_t>(), static_cast<size_t>(sample.bytes())});
  }
  return sample;
}

double Loader::wait_seconds() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->waited_seconds;
}

}  // namespace weft::data
