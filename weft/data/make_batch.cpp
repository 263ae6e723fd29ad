#include "weft/data/make_batch.h"

#include <algorithm>
#include <cstring>

#include "weft/base/error.h"
#include "weft/base/rng.h"
#include "weft/data/augment_labels.h"
#include "weft/data/check_samples.h"

namespace weft::data {

namespace {

/// Where it is none, the loss would only become NaN.
void require_class(const DatasetInfo& info, int64_t index, int32_t label) {
  if (label >= 0 && label < info.classes) return;
  fail(ErrorKind::data, "'{}': sample {} has class {}, but there are {} classes, counted from 0; mend the labels",
       info.name, index, label, info.classes);
}

void check_loader_options(const Dataset& dataset, const LoaderOptions& options) {
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
}

}  // namespace

BatchMaker::BatchMaker(const Dataset& dataset, LoaderOptions options)
    : dataset_(dataset), options_(std::move(options)) {
  check_loader_options(dataset, options_);
  const DatasetInfo& info = dataset.info();
  if (info.sample_dtype == DType::u8) normalization_.emplace(options_.statistics, info.sample_shape[0]);
}

int64_t BatchMaker::steps_per_epoch() const {
  const int64_t size = dataset_.size();
  return options_.drop_last ? size / options_.batch : (size + options_.batch - 1) / options_.batch;
}

Permutation BatchMaker::order_of(int64_t epoch) const {
  return Permutation(dataset_.size(), mix(mix(options_.seed, hash_name("shuffle")), static_cast<uint64_t>(epoch)));
}

uint64_t BatchMaker::pass_of(int64_t epoch) const {
  return mix(mix(options_.seed, hash_name("pass")), static_cast<uint64_t>(epoch));
}

UnfinishedBatch BatchMaker::allocate() const {
  const DatasetInfo& info = dataset_.info();
  const auto batched = [&](const Shape& shape) {
    std::vector<int64_t> dims = shape.dims();
    dims.insert(dims.begin(), options_.batch);
    return Shape(std::move(dims));
  };
  UnfinishedBatch result;
  result.batch.samples = Tensor(batch_dtype(info), batched(info.sample_shape));
  result.batch.targets = options_.mix.on() ? Tensor(DType::f32, Shape{options_.batch, info.classes})
                                           : Tensor(info.target_dtype, batched(info.target_shape));
  if (options_.mix.on()) result.labels.resize(static_cast<size_t>(options_.batch));
  return result;
}

BatchMaker::Scratch BatchMaker::make_scratch() const {
  Scratch scratch;
  if (normalization_) scratch.pixels.resize(static_cast<size_t>(dataset_.sample_bytes()));
  return scratch;
}

void BatchMaker::fill_image(Scratch& scratch, int64_t index, int64_t epoch, std::span<float> target) const {
  const Shape& shape = dataset_.info().sample_shape;
  const AugmentChoice choice = draw_choice(options_.augment, shape, options_.seed, epoch, index);
  if (options_.augment.resized_crop > 0) {
    std::shared_ptr<const Image> picture = dataset_.picture(index);
    if (!picture) {
      dataset_.get({.index = index}, scratch.pixels);
      picture = std::make_shared<const Image>(Image{shape[0], shape[1], shape[2], scratch.pixels});
    }
    const Region region = draw_resized_crop(options_.augment, *picture, options_.seed, epoch, index);
    const Image cut = resize(cut_out(*picture, region), shape[1], shape[2]);
    return transform(cut.pixels, shape, options_.augment, choice, *normalization_, target, scratch.numbers);
  }
  dataset_.get({.index = index}, scratch.pixels);
  transform(scratch.pixels, shape, options_.augment, choice, *normalization_, target, scratch.numbers);
}

/// Classes of pixels move with them.
void BatchMaker::fill_target(Scratch& scratch, const SampleKey& key, int64_t epoch, std::span<uint8_t> target) const {
  dataset_.get_target(key, target);
  if (dataset_.info().task != Task::segmentation || !options_.augment.any()) return;
  const Shape& shape = dataset_.info().sample_shape;
  const AugmentChoice choice = draw_choice(options_.augment, shape, options_.seed, epoch, key.index);
  Region region{0, 0, shape[1], shape[2]};
  if (options_.augment.resized_crop > 0)
    region =
        draw_resized_crop(options_.augment, Image{shape[0], shape[1], shape[2], {}}, options_.seed, epoch, key.index);
  const std::span<int32_t> labels(reinterpret_cast<int32_t*>(target.data()), target.size() / sizeof(int32_t));
  transform_labels(labels, shape[1], shape[2], options_.augment, choice, region, scratch.labels);
}

void BatchMaker::begin(UnfinishedBatch& unfinished, int64_t epoch, int64_t step) const {
  Batch& batch = unfinished.batch;
  batch.epoch = epoch;
  batch.step = step;
  batch.count = std::min(options_.batch, dataset_.size() - step * options_.batch);
}

void BatchMaker::fill_row(UnfinishedBatch& unfinished, int64_t row, const Permutation& order, Scratch& scratch) const {
  Batch& batch = unfinished.batch;
  const DatasetInfo& info = dataset_.info();
  const int64_t at = batch.step * options_.batch + row;
  const SampleKey key{options_.shuffle ? order[at] : at, pass_of(batch.epoch)};
  const auto sample_bytes = static_cast<size_t>(batch.samples.bytes() / options_.batch);
  auto* sample = batch.samples.data_as<uint8_t>() + static_cast<size_t>(row) * sample_bytes;
  if (normalization_)
    fill_image(scratch, key.index, batch.epoch, {reinterpret_cast<float*>(sample), sample_bytes / sizeof(float)});
  else
    dataset_.get(key, {sample, sample_bytes});
  if (options_.mix.on()) {
    unfinished.labels[static_cast<size_t>(row)] = dataset_.label(key.index);
    return;
  }
  const auto target_bytes = static_cast<size_t>(info.target_bytes());
  auto* target = batch.targets.data_as<uint8_t>() + static_cast<size_t>(row) * target_bytes;
  fill_target(scratch, key, batch.epoch, {target, target_bytes});
  if (info.task == Task::classification && info.target_dtype == DType::i32)
    require_class(info, key.index, *reinterpret_cast<const int32_t*>(target));
}

void BatchMaker::finish(UnfinishedBatch& unfinished) const {
  Batch& batch = unfinished.batch;
  if (options_.mix.on())
    return mix_batch(batch.samples, unfinished.labels, options_.mix, options_.seed, batch.epoch, batch.step,
                     batch.targets);
  for (Tensor* tensor : {&batch.samples, &batch.targets}) {
    const auto bytes = static_cast<size_t>(tensor->bytes() / options_.batch);
    std::memset(tensor->data_as<uint8_t>() + static_cast<size_t>(batch.count) * bytes, 0,
                static_cast<size_t>(options_.batch - batch.count) * bytes);
  }
}

Tensor BatchMaker::sample(int64_t index, int64_t epoch) const {
  const DatasetInfo& info = dataset_.info();
  Tensor sample(batch_dtype(info), info.sample_shape);
  Scratch scratch = make_scratch();
  if (normalization_)
    fill_image(scratch, index, epoch, {sample.data_as<float>(), static_cast<size_t>(sample.elements())});
  else
    dataset_.get({index, pass_of(epoch)}, {sample.data_as<uint8_t>(), static_cast<size_t>(sample.bytes())});
  return sample;
}

void BatchMaker::will_need(int64_t epoch, int64_t step, int64_t first_row, int64_t last_row) const {
  if (!dataset_.info().decoded) return;
  const Permutation order = order_of(epoch);
  const int64_t begin = step * options_.batch, end = std::min(begin + last_row, dataset_.size());
  for (int64_t at = begin + first_row; at < end; ++at) dataset_.will_need(options_.shuffle ? order[at] : at);
}

}  // namespace weft::data
