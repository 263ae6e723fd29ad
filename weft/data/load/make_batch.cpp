#include "weft/data/load/make_batch.h"

#include <algorithm>
#include <cstring>

#include "weft/base/error.h"
#include "weft/base/rng.h"
#include "weft/data/augment/augment_labels.h"
#include "weft/data/dataset/check_samples.h"

namespace weft::data {

namespace {

/// Where it is none, the loss would only become NaN.
void require_class(const DatasetInfo& info, int64_t index, int32_t label) {
  if (label >= 0 && label < info.classes) return;
  fail(ErrorKind::data, "'{}': sample {} has class {}, but there are {} classes, counted from 0; mend the labels",
       info.name, index, label, info.classes);
}

/// What is given in pixels shrinks and grows with the image, but does not vanish.
AugmentOptions scaled_augmentation(AugmentOptions options, const Shape& sample, int64_t height) {
  if (height == 0) return options;
  options.data_height = sample[1];
  int64_t& pixels = options.crop_padding;
  if (pixels > 0) pixels = std::max<int64_t>(1, (2 * pixels * height + sample[1]) / (2 * sample[1]));
  return options;
}

void check_loader_options(const Dataset& dataset, const LoaderOptions& options) {
  check_info(dataset.info());
  const std::string& name = dataset.info().name;
  check(options.shares >= 1 && options.share >= 0 && options.share < options.shares, "a share of several");
  check(options.turns == 1 || (options.drop_last && options.turns > 1 && options.grains == 0),
        "turns of whole batches without grains");
  check(options.grains == 0 || (options.drop_last && options.grains >= options.shares),
        "whole batches of at least as many grains as there are shares");
  for (const LoaderStage& stage : stages_of(options)) {
    if (stage.batch < 1) fail(ErrorKind::usage, "[loader] batch {} is too small; at least 1", stage.batch);
    if (stage.batch > (int64_t{1} << 24))
      fail(ErrorKind::usage, "[loader] batch {} is absurdly large; at most {}", stage.batch, int64_t{1} << 24);
    if (options.grains > 0 && stage.batch % options.grains != 0)
      fail(ErrorKind::usage, "[loader] batch {} cannot be divided into {} equal grains; choose {}", stage.batch,
           options.grains, (stage.batch / options.grains + 1) * options.grains);
    if (const int64_t parts = options.turns * options.shares;
        options.drop_last && options.grains == 0 && stage.batch % parts != 0) {
      const int64_t below = stage.batch - stage.batch % parts, above = below + parts;
      fail(ErrorKind::usage, "[loader] batch {} cannot be divided into {} equal shares; choose {}{}", stage.batch,
           parts, below > 0 ? fmt::format("{} or ", below) : "", above);
    }
    if (options.drop_last && dataset.size() < stage.batch)
      fail(ErrorKind::usage, "[loader] '{}' has {} samples, fewer than one batch of {}; choose a smaller batch", name,
           dataset.size(), stage.batch);
  }
  if (options.workers < 0 || options.workers > 1024)
    fail(ErrorKind::usage, "[loader] {} workers; want 0 to 1024", options.workers);
  if (options.prefetch < 1 || options.prefetch > 1024)
    fail(ErrorKind::usage, "[loader] prefetch of {} batches; want 1 to 1024", options.prefetch);
  if (options.mix.on() && !options.drop_last)
    fail(ErrorKind::usage, "[loader] mixup and cutmix want whole batches: drop_last");
  const DatasetInfo& info = dataset.info();
  const bool images = info.sample_dtype == DType::u8;
  for (const LoaderStage& stage : stages_of(options))
    if (images)
      check_options(scaled_augmentation(options.augment, info.sample_shape, stage.image_height),
                    scaled_shape(info.sample_shape, stage.image_height));
  if (!images && (options.augment.any() || options.mix.on()))
    fail(ErrorKind::usage, "[augment] '{}' holds {}, and only images can be augmented; leave [augment] away", name,
         info.item());
  if (options.mix.on() && info.target_kind() != TargetKind::sample_class)
    fail(ErrorKind::usage, "[augment] mixup and cutmix are for classes, '{}' is for {}; leave them away", name,
         info.task);
}

LoaderOptions checked(const Dataset& dataset, LoaderOptions options) {
  check_loader_options(dataset, options);
  return options;
}

}  // namespace

std::vector<LoaderStage> stages_of(const LoaderOptions& options) {
  if (options.stages.empty()) return {{0, options.batch, 0}};
  return options.stages;
}

std::pair<int64_t, int64_t> rows_of_share(int64_t count, int share, int shares) {
  return {count * share / shares, count * (share + 1) / shares};
}

BatchPieces pieces_of(const LoaderOptions& options) {
  if (options.grains == 0) return {options.share, options.share + 1, options.shares};
  const auto [begin, end] = rows_of_share(options.grains, options.share, options.shares);
  return {begin, end, options.grains};
}

BatchMaker::BatchMaker(const Dataset& dataset, LoaderOptions options)
    : dataset_(dataset),
      options_(checked(dataset, std::move(options))),
      course_(dataset.size(), options_.drop_last, stages_of(options_)) {
  const DatasetInfo& info = dataset.info();
  if (info.sample_dtype == DType::u8) normalization_.emplace(options_.statistics, info.sample_shape[0]);
  for (const LoaderStage& stage : stages_of(options_))
    stages_.push_back({stage.batch, scaled_shape(info.sample_shape, stage.image_height),
                       scaled_augmentation(options_.augment, info.sample_shape, stage.image_height)});
}

/// A batch that is not whole may leave a share one row more than a whole one does, but never more than the largest
/// share.
int64_t BatchMaker::rows_of(const Stage& stage) const {
  if (options_.grains > 0) return stage.batch / options_.grains * (options_.grains - options_.shares + 1);
  if (!options_.drop_last) return (stage.batch + options_.shares - 1) / options_.shares;
  const auto [begin, end] = rows_of_share(stage.batch, options_.share, options_.shares);
  return end - begin;
}

int64_t BatchMaker::most_rows() const {
  int64_t most = 1;
  for (const Stage& stage : stages_) most = std::max(most, rows_of(stage));
  return most;
}

int64_t BatchMaker::count_of(int64_t epoch, int64_t step) const {
  return std::min(stage_of(epoch, step).batch, dataset_.size() - samples_before(epoch, step));
}

int64_t BatchMaker::samples_before(int64_t epoch, int64_t step) const {
  const BatchCourse::Piece& piece = course_.piece_of(epoch, step);
  return piece.first_sample + (step - piece.first_in_epoch) * stages_[piece.stage].batch;
}

int64_t BatchMaker::row_of_all(int64_t first, int64_t count, int64_t row) const {
  if (options_.turns == 1) return first + row;
  const int64_t of_turn = count / options_.turns, turn = row / of_turn;
  return (turn * options_.shares + options_.share) * of_turn + row % of_turn;
}

/// The row before the first of all is the last one.
int64_t BatchMaker::position_of(const UnfinishedBatch& unfinished, int64_t row) const {
  const Batch& batch = unfinished.batch;
  int64_t at = 0;
  if (row < batch.count) {
    at = row_of_all(unfinished.first, batch.count, row);
  } else {
    const int64_t turn = row - batch.count;
    at = row_of_all(unfinished.first, batch.count, turn * batch.count / options_.turns) - 1;
    if (at < 0) at = count_of(batch.epoch, batch.step) - 1;
  }
  return samples_before(batch.epoch, batch.step) + at;
}

Permutation BatchMaker::order_of(int64_t epoch) const {
  return Permutation(dataset_.size(), mix(mix(options_.seed, hash_name("shuffle")), static_cast<uint64_t>(epoch)));
}

uint64_t BatchMaker::pass_of(int64_t epoch) const {
  return mix(mix(options_.seed, hash_name("pass")), static_cast<uint64_t>(epoch));
}

UnfinishedBatch BatchMaker::allocate(int64_t rows, const Shape& sample) const {
  const DatasetInfo& info = dataset_.info();
  const auto batched = [&](const Shape& shape) {
    std::vector<int64_t> dims = shape.dims();
    dims.insert(dims.begin(), rows);
    return Shape(std::move(dims));
  };
  UnfinishedBatch result;
  result.batch.samples = Tensor(batch_dtype(info), batched(sample));
  result.batch.targets = options_.mix.on() ? Tensor(DType::f32, Shape{rows, info.classes})
                                           : Tensor(info.target_dtype, batched(info.target_shape));
  if (options_.mix.on()) result.labels.resize(static_cast<size_t>(rows + options_.turns));
  return result;
}

UnfinishedBatch BatchMaker::allocate(int64_t epoch, int64_t step) const {
  const Stage& stage = stage_of(epoch, step);
  UnfinishedBatch result = allocate(rows_of(stage), stage.sample);
  if (mixes_a_share()) result.before = Tensor(DType::f32, Shape{options_.turns * stage.sample.elements()});
  return result;
}

/// As many samples of the first stage's shape as hold the batch of any stage: small batches of large images too.
UnfinishedBatch BatchMaker::allocate_largest() const {
  const Shape& sample = stages_.front().sample;
  int64_t elements = 0, largest_sample = 0;
  for (const Stage& stage : stages_) {
    elements = std::max(elements, rows_of(stage) * stage.sample.elements());
    largest_sample = std::max(largest_sample, stage.sample.elements());
  }
  const int64_t samples = (elements + sample.elements() - 1) / sample.elements();
  UnfinishedBatch result = allocate(std::max(samples, most_rows()), sample);
  if (mixes_a_share()) result.before = Tensor(DType::f32, Shape{options_.turns * largest_sample});
  return result;
}

BatchMaker::Scratch BatchMaker::make_scratch() const {
  Scratch scratch;
  if (normalization_) scratch.pixels.resize(static_cast<size_t>(dataset_.sample_bytes()));
  return scratch;
}

void BatchMaker::fill_image(Scratch& scratch, const Stage& stage, int64_t index, int64_t epoch,
                            std::span<float> target) const {
  const Shape& whole = dataset_.info().sample_shape;
  const auto& [batch, shape, augment] = stage;
  const AugmentChoice choice = draw_choice(augment, options_.seed, epoch, index);
  const auto as_it_is = [&] {
    dataset_.get({.index = index}, scratch.pixels);
    return Image{whole[0], whole[1], whole[2], scratch.pixels};
  };
  if (augment.resized_crop > 0) {
    std::shared_ptr<const Image> picture = dataset_.picture(index);
    if (!picture) picture = std::make_shared<const Image>(as_it_is());
    const Region region = draw_resized_crop(augment, *picture, options_.seed, epoch, index);
    const Image cut = resize(cut_out(*picture, region), shape[1], shape[2]);
    return transform(cut.pixels, shape, augment, choice, *normalization_, target, scratch.numbers);
  }
  if (shape != whole) {
    const Image resized = resize(as_it_is(), shape[1], shape[2]);
    return transform(resized.pixels, shape, augment, choice, *normalization_, target, scratch.numbers);
  }
  dataset_.get({.index = index}, scratch.pixels);
  transform(scratch.pixels, shape, augment, choice, *normalization_, target, scratch.numbers);
}

/// Classes of pixels move with them.
void BatchMaker::fill_target(Scratch& scratch, const SampleKey& key, int64_t epoch, std::span<uint8_t> target) const {
  dataset_.get_target(key, target);
  if (dataset_.info().target_kind() != TargetKind::pixel_classes || !options_.augment.any()) return;
  const Shape& shape = dataset_.info().sample_shape;
  const AugmentChoice choice = draw_choice(options_.augment, options_.seed, epoch, key.index);
  Region region{0, 0, shape[1], shape[2]};
  if (options_.augment.resized_crop > 0)
    region =
        draw_resized_crop(options_.augment, Image{shape[0], shape[1], shape[2], {}}, options_.seed, epoch, key.index);
  const std::span<int32_t> labels(reinterpret_cast<int32_t*>(target.data()), target.size() / sizeof(int32_t));
  transform_labels(labels, shape[1], shape[2], options_.augment, choice, region, scratch.labels);
}

void BatchMaker::begin(UnfinishedBatch& unfinished, int64_t epoch, int64_t step, const BatchPieces& pieces) const {
  Batch& batch = unfinished.batch;
  batch.epoch = epoch;
  batch.step = step;
  const auto [first, last] = pieces.rows(count_of(epoch, step));
  unfinished.first = first;
  batch.count = last - first;
  unfinished.rows = batch.count + (mixes_a_share() ? options_.turns : 0);
}

void BatchMaker::fill_row(UnfinishedBatch& unfinished, int64_t row, const Permutation& order, Scratch& scratch) const {
  Batch& batch = unfinished.batch;
  const DatasetInfo& info = dataset_.info();
  const Stage& stage = stage_of(batch);
  const int64_t at = position_of(unfinished, row);
  const int64_t turn = row - batch.count;  // before which the row is; below 0: it is one of the share
  const SampleKey key{options_.shuffle ? order[at] : at, pass_of(batch.epoch)};
  const auto sample_bytes = static_cast<size_t>(byte_size(batch.samples.dtype(), stage.sample.elements()));
  auto* sample = turn >= 0 ? unfinished.before.data_as<uint8_t>() + static_cast<size_t>(turn) * sample_bytes
                           : batch.samples.data_as<uint8_t>() + static_cast<size_t>(row) * sample_bytes;
  if (normalization_)
    fill_image(scratch, stage, key.index, batch.epoch,
               {reinterpret_cast<float*>(sample), sample_bytes / sizeof(float)});
  else
    dataset_.get(key, {sample, sample_bytes});
  if (options_.mix.on()) {
    unfinished.labels[static_cast<size_t>(row)] = dataset_.label(key.index);
    return;
  }
  const auto target_bytes = static_cast<size_t>(info.target_bytes());
  auto* target = batch.targets.data_as<uint8_t>() + static_cast<size_t>(row) * target_bytes;
  fill_target(scratch, key, batch.epoch, {target, target_bytes});
  if (info.target_kind() == TargetKind::sample_class && info.target_dtype == DType::i32)
    require_class(info, key.index, *reinterpret_cast<const int32_t*>(target));
}

void BatchMaker::finish(UnfinishedBatch& unfinished) const {
  Batch& batch = unfinished.batch;
  const Stage& stage = stage_of(batch);
  const auto count = static_cast<size_t>(batch.count);
  const size_t rows = options_.grains > 0 ? count : static_cast<size_t>(rows_of(stage));
  const auto sample_elements = static_cast<size_t>(stage.sample.elements());
  if (options_.mix.on()) {
    const auto classes = static_cast<size_t>(dataset_.info().classes);
    const size_t turns = mixes_a_share() ? static_cast<size_t>(options_.turns) : 1, of_turn = rows / turns;
    for (size_t turn = 0; turn < turns; ++turn) {
      const size_t first = turn * of_turn;
      std::optional<MixNeighbour> before;
      if (mixes_a_share())
        before = {{unfinished.before.data_as<float>() + turn * sample_elements, sample_elements},
                  unfinished.labels[count + turn]};
      mix_batch({batch.samples.data_as<float>() + first * sample_elements, of_turn * sample_elements}, stage.sample,
                {unfinished.labels.data() + first, of_turn}, before, options_.mix, options_.seed, batch.epoch,
                batch.step, {batch.targets.data_as<float>() + first * classes, of_turn * classes});
    }
    return;
  }
  const auto sample_bytes =
      static_cast<size_t>(byte_size(batch.samples.dtype(), static_cast<int64_t>(sample_elements)));
  const auto target_bytes = static_cast<size_t>(dataset_.info().target_bytes());
  std::memset(batch.samples.data_as<uint8_t>() + count * sample_bytes, 0, (rows - count) * sample_bytes);
  std::memset(batch.targets.data_as<uint8_t>() + count * target_bytes, 0, (rows - count) * target_bytes);
}

Tensor BatchMaker::sample(int64_t index, int64_t epoch) const {
  const DatasetInfo& info = dataset_.info();
  const Stage& stage = stage_of(epoch, 0);
  Tensor sample(batch_dtype(info), stage.sample);
  Scratch scratch = make_scratch();
  if (normalization_)
    fill_image(scratch, stage, index, epoch, {sample.data_as<float>(), static_cast<size_t>(sample.elements())});
  else
    dataset_.get({index, pass_of(epoch)}, {sample.data_as<uint8_t>(), static_cast<size_t>(sample.bytes())});
  return sample;
}

void BatchMaker::will_need(int64_t epoch, int64_t step, const BatchPieces& pieces, int64_t first_row,
                           int64_t last_row) const {
  if (!dataset_.info().decoded) return;
  const Permutation order = order_of(epoch);
  const auto [first, last] = pieces.rows(count_of(epoch, step));
  const int64_t before = samples_before(epoch, step);
  for (int64_t row = first_row; row < std::min(last_row, last - first); ++row) {
    const int64_t at = before + row_of_all(first, last - first, row);
    dataset_.will_need(options_.shuffle ? order[at] : at);
  }
}

}  // namespace weft::data
