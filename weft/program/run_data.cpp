#include "weft/program/run_data.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/data/dataset/check_samples.h"
#include "weft/data/dataset/checksums.h"
#include "weft/data/dataset/class_names.h"
#include "weft/data/dataset/data_spec.h"
#include "weft/data/open_dataset.h"
#include "weft/data/validation_part.h"
#include "weft/step/micro_batches.h"

namespace weft::program {

namespace {

data::ChannelStatistics no_normalisation(int64_t channels) {
  const auto count = static_cast<size_t>(channels);
  return {std::vector<float>(count, 0.0f), std::vector<float>(count, 1.0f)};
}

/// What the spec gives instead of the data's own mean and deviation. Error(usage) where it is not one number per
/// channel.
std::optional<data::ChannelStatistics> given_statistics(const spec::AugmentSpec& augment,
                                                        const data::DatasetInfo& info) {
  if (augment.mean.empty() && augment.deviation.empty()) return std::nullopt;
  if (info.sample_dtype != DType::u8)
    fail(ErrorKind::usage, "augment.mean and augment.deviation are of images, '{}' holds {}; leave them away",
         info.name, info.item());
  if (!augment.normalise)
    fail(ErrorKind::usage, "augment.mean and augment.deviation beside augment.normalise = false; leave one away");
  const auto channels = static_cast<size_t>(info.sample_shape[0]);
  for (const auto& [key, values] : {std::pair("mean", &augment.mean), std::pair("deviation", &augment.deviation)})
    if (values->size() != channels)
      fail(ErrorKind::usage, "augment.{} holds {} numbers, the images of '{}' have {} channel{}; give one for each",
           key, values->size(), info.name, channels, channels == 1 ? "" : "s");
  return data::ChannelStatistics{{augment.mean.begin(), augment.mean.end()},
                                 {augment.deviation.begin(), augment.deviation.end()}};
}

/// Error(usage) where an epoch holds no whole step, or the ranks cannot divide it.
void require_whole_steps(const spec::RunSpec& spec, const data::Dataset& training, int shares) {
  const std::string& name = training.info().name;
  const std::string_view section = spec.batch_schedule.batches.empty() ? "" : "batch_schedule.batches: ";
  for (const spec::Stage& stage : spec::stages_of(spec)) {
    if (const int64_t over = spec.balance.grains > 0 ? 0 : stage.batch % shares; over != 0)
      fail(ErrorKind::usage, "{}batch = {} cannot be divided among {} ranks; choose {}{}, or another number of ranks",
           section, stage.batch, shares, stage.batch > over ? fmt::format("{} or ", stage.batch - over) : "",
           stage.batch - over + shares);
    if (training.size() < stage.batch)
      fail(ErrorKind::usage, "{}batch = {} is larger than the training data '{}' of {} samples; choose a smaller batch",
           section, stage.batch, name, training.size());
    if (training.size() / stage.batch < stage.accumulate)
      fail(ErrorKind::usage,
           "accumulate = {} batches of {} are more than the training data '{}' of {} samples; lower it",
           stage.accumulate, stage.batch, name, training.size());
  }
  const spec::Course course(spec, training.size());
  for (const spec::Stage& stage : spec::stages_of(spec))
    if (course.steps_of_stage(stage) == 0)
      fail(ErrorKind::usage,
           "batch_schedule, image_schedule: from epoch {:g} to the next change no step of {} samples fits into the {} "
           "samples of '{}'; leave that change away, or put the boundaries further apart",
           stage.begin(), stage.step_samples(), training.size(), name);
}

std::unique_ptr<data::Dataset> open_validation_data(const Library& library, const spec::RunSpec& spec,
                                                    const std::string& encoding) {
  const std::string text = validation_data_spec(library, spec);
  const data::Split split = data::has_whole(library.data, text) ? data::Split::all : data::Split::train;
  return data::open_dataset(library.data, text, split, encoding);
}

/// Error(data) where samples for evaluation are not what the model is trained on.
void require_equal_samples(const data::DatasetInfo& trained, const data::DatasetInfo& evaluated, const char* part) {
  if (evaluated.sample_shape != trained.sample_shape)
    fail(ErrorKind::data, "'{}': training samples are {}, {} samples {}; they must have one shape", trained.name,
         to_string(trained.sample_shape), part, to_string(evaluated.sample_shape));
  require_equal_targets(trained, evaluated);
}

}  // namespace

std::string validation_data_spec(const Library& library, const spec::RunSpec& spec) {
  const data::DataSpec trained = data::parse_data_spec(spec.data);
  data::DataSpec wanted = data::parse_data_spec(spec.validation);
  if (find_entry(library.data, wanted.kind) == nullptr) wanted = {trained.kind, spec.validation, {}};
  constexpr std::string_view kOfParts[] = {"split", "seed", "test", "test_skip"};
  if (wanted.kind == trained.kind && wanted.options.empty())
    for (const auto& option : trained.options)
      if (std::find(std::begin(kOfParts), std::end(kOfParts), option.first) == std::end(kOfParts))
        wanted.options.push_back(option);
  return data::with_absolute_paths(library.data, data::print_data_spec(wanted));
}

std::vector<std::string> describe_missing_classes(const RunData& run_data) {
  const data::DatasetInfo& info = run_data.description.info;
  std::vector<std::string> lines;
  if (info.target_kind() != data::TargetKind::sample_class) return lines;
  const auto look_at = [&](const data::Dataset* dataset, const char* part) {
    if (dataset == nullptr) return;
    std::vector<bool> found(static_cast<size_t>(info.classes), false);
    for (int64_t index = 0; index < dataset->size(); ++index) {
      const int32_t label = dataset->label(index);
      if (label >= 0 && label < info.classes) found[static_cast<size_t>(label)] = true;
    }
    std::vector<std::string> missing;
    for (int64_t at = 0; at < info.classes; ++at)
      if (!found[static_cast<size_t>(at)])
        missing.push_back(info.class_names.empty() ? std::to_string(at)
                                                   : "'" + data::class_name(info.class_names, at) + "'");
    if (missing.empty()) return;
    constexpr size_t kShown = 5;
    const size_t left_out = missing.size() - std::min(kShown, missing.size());
    missing.resize(missing.size() - left_out);
    lines.push_back(fmt::format("the {} part of the data has no sample of class {}{}", part, fmt::join(missing, ", "),
                                left_out > 0 ? fmt::format(" and {} more", left_out) : ""));
  };
  look_at(run_data.training.get(), "training");
  look_at(run_data.validation.get(), "validation");
  look_at(run_data.test.get(), "test");
  return lines;
}

void require_equal_targets(const data::DatasetInfo& trained, const data::DatasetInfo& data) {
  if (data.target_shape == trained.target_shape && data.target_dtype == trained.target_dtype) return;
  fail(ErrorKind::data, "'{}': a target is {} of {}, of the training data {} of {}; they must be alike", data.name,
       to_string(data.target_shape), weft::name_of(data.target_dtype), to_string(trained.target_shape),
       weft::name_of(trained.target_dtype));
}

RunData open_run_data(const Library& library, const spec::RunSpec& spec, int shares) {
  RunData run_data;
  run_data.training = data::open_dataset(library.data, spec.data, data::Split::train);
  const std::optional<double> share = spec::validation_share(spec);
  if (share.value_or(0) > 0) {
    data::TrainingParts parts =
        data::set_validation_aside(std::move(run_data.training), *share, static_cast<uint64_t>(spec.validation_seed));
    run_data.training = std::move(parts.training);
    run_data.validation = std::move(parts.validation);
  }
  const data::DatasetInfo& info = run_data.training->info();
  data::check_info(info);
  if (!share) run_data.validation = open_validation_data(library, spec, info.encoding);
  if (data::has_test_split(library.data, spec.data))
    run_data.test = data::open_dataset(library.data, spec.data, data::Split::test, info.encoding);
  require_whole_steps(spec, *run_data.training, shares);
  if (!spec.image_schedule.sizes.empty() &&
      (info.sample_dtype != DType::u8 || info.target_kind() != data::TargetKind::sample_class))
    fail(ErrorKind::usage, "image_schedule is for images in classes, '{}' holds {} for {}; leave it away", info.name,
         info.item(), info.task);
  if (run_data.validation) require_equal_samples(info, run_data.validation->info(), "validation");
  if (run_data.test) require_equal_samples(info, run_data.test->info(), "test");
  if (spec::mixes(spec.augment) &&
      (info.sample_dtype != DType::u8 || info.target_kind() != data::TargetKind::sample_class))
    fail(ErrorKind::usage,
         "augment.mixup and augment.cutmix are for images in classes, '{}' holds {} for {}; leave them away", info.name,
         info.item(), info.task);
  run_data.description = {info, {}, run_data.training->size(), data::target_checksum(*run_data.training)};
  if (const std::optional<data::ChannelStatistics> given = given_statistics(spec.augment, info))
    run_data.description.statistics = *given;
  else if (info.sample_dtype == DType::u8)
    run_data.description.statistics = spec.augment.normalise
                                          ? data::channel_statistics(*run_data.training, static_cast<int>(spec.threads))
                                          : no_normalisation(info.sample_shape[0]);
  return run_data;
}

namespace {

/// What a spec reads its training samples from, whatever its options say; links are followed.
std::string source_of(const std::string& absolute_spec) {
  const data::DataSpec spec = data::parse_data_spec(absolute_spec);
  const std::string path = spec.argument.substr(0, spec.kind == "idx" ? spec.argument.find(',') : std::string::npos);
  std::error_code code;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, code);
  return spec.kind + ":" + (code || path.empty() ? path : real.string());
}

/// `text` with those options of the run's data that it does not give. A part of the file and a file for testing exclude
/// each other: who gives the one does not want the other.
std::string with_options_of_run(const std::string& text, const std::string& run_data) {
  data::DataSpec spec = data::parse_data_spec(text);
  const auto given = [&, options = spec.options](std::string_view name) {
    return std::any_of(options.begin(), options.end(), [&](const auto& option) { return option.first == name; });
  };
  for (const auto& [name, value] : data::parse_data_spec(run_data).options) {
    const bool of_part = name == "split" || name == "seed", of_file = name == "test" || name == "test_skip";
    if (given(name) || (of_part && given("test")) || (of_file && given("split"))) continue;
    spec.options.emplace_back(name, value);
  }
  return data::print_data_spec(spec);
}

}  // namespace

EvaluationData open_evaluation_data(const Library& library, const std::string& data_spec, const spec::RunSpec& run,
                                    const spec::DataDescription& trained) {
  EvaluationData data{.dataset = nullptr, .spec = data_spec};
  const std::string run_data = data::with_absolute_paths(library.data, run.data);
  data.own = source_of(data::with_absolute_paths(library.data, data_spec)) == source_of(run_data);
  if (data.own) data.spec = with_options_of_run(data_spec, run_data);
  data.split = !data.own && data::has_whole(library.data, data_spec) ? data::Split::all
               : data::has_test_split(library.data, data.spec)       ? data::Split::test
                                                                     : data::Split::train;
  data.dataset = data::open_dataset(library.data, data.spec, data.split, trained.info.encoding);
  return data;
}

spec::Stage largest_stage(const spec::RunSpec& spec, const spec::DataDescription& description) {
  const std::vector<spec::Stage> stages = spec::stages_of(spec);
  const auto elements = [&](const spec::Stage& stage) {
    return stage.batch * data::scaled_shape(description.info.sample_shape, stage.image_height).elements();
  };
  return *std::max_element(stages.begin(), stages.end(),
                           [&](const spec::Stage& a, const spec::Stage& b) { return elements(a) < elements(b); });
}

models::ModelInput model_input(const spec::DataDescription& description, const spec::StepShape& shape) {
  const data::DatasetInfo& info = description.info;
  return {.batch = shape.batch,
          .shape = data::scaled_shape(info.sample_shape, shape.image_height).dims(),
          .classes = info.classes,
          .target = info.target_dtype,
          .vocabulary = info.vocabulary,
          .source = info.source_length,
          .text_length = info.target_kind() == data::TargetKind::text ? info.target_shape.elements() : 0,
          .has_ignored = info.has_ignored_targets(),
          .task = info.task};
}

namespace {

/// This share of the largest of all stages.
int64_t bytes_of_batch(const data::LoaderOptions& options, const data::DatasetInfo& info) {
  const int64_t target = options.mix.on() ? byte_size(DType::f32, info.classes) : info.target_bytes();
  int64_t samples_bytes = 0, targets_bytes = 0;
  for (const data::LoaderStage& stage : data::stages_of(options)) {
    const int64_t elements = data::scaled_shape(info.sample_shape, stage.image_height).elements();
    const int64_t rows = options.grains > 0
                             ? stage.batch / options.grains * (options.grains - options.shares + 1)  // the most
                             : (stage.batch + options.shares - 1) / options.shares;
    samples_bytes = std::max(samples_bytes, byte_size(data::batch_dtype(info), rows * elements));
    targets_bytes = std::max(targets_bytes, rows * target);
  }
  return align_up(samples_bytes) + align_up(targets_bytes);
}

/// As many workers as there are cores, of which the loader uses those that the steps need. Small batches are made
/// further ahead: their steps are over before a worker wakes up.
void set_workers(data::LoaderOptions& options, const spec::RunSpec& spec, const data::DatasetInfo& info,
                 const BatchShare& share) {
  constexpr int64_t kAhead = 16 << 20, kFewest = 2, kMost = 16;
  options.share = share.share;
  options.shares = share.shares;
  options.automatic = spec.loader.workers == 0;
  options.workers = static_cast<int>(options.automatic ? available_cores() : spec.loader.workers);
  const int64_t automatic = std::clamp(kAhead / std::max<int64_t>(1, bytes_of_batch(options, info)), kFewest, kMost);
  options.prefetch = static_cast<int>(spec.loader.prefetch > 0 ? spec.loader.prefetch : automatic);
}

}  // namespace

data::LoaderOptions training_loader_options(const spec::RunSpec& spec, const spec::DataDescription& description,
                                            const BatchShare& share, const Entries& entries) {
  const std::vector<spec::Stage> stages = spec::stages_of(spec);
  data::LoaderOptions options{.batch = stages.front().batch,
                              .seed = static_cast<uint64_t>(spec.seed),
                              .shuffle = true,
                              .drop_last = true,
                              .augment = {},
                              .mix = {},
                              .statistics = description.statistics};
  if (stages.size() > 1 || stages.front().image_height > 0) options.stages = spec::loader_stages(stages);
  const spec::AugmentSpec& augment = spec.augment;
  options.augment.crop_padding = augment.crop_padding;
  options.augment.resized_crop = augment.resized_crop;
  options.augment.rotate = augment.rotate;
  for (const AugmentationEntry& entry : entries.augmentations)
    if (std::optional<data::PixelChange> change = entry.make(augment)) options.augment.changes.push_back(*change);
  options.mix = {augment.mixup, augment.cutmix};
  options.grains = spec.balance.grains;
  options.turns = step::micro_batches_of(spec);
  options.augment.padding = augment.padding == "reflect" ? data::Padding::reflect : data::Padding::zero;
  options.augment.flip = augment.flip == "random"        ? data::Flip::random
                         : augment.flip == "alternating" ? data::Flip::alternating
                                                         : data::Flip::none;
  set_workers(options, spec, description.info, share);
  return options;
}

data::LoaderOptions evaluation_loader_options(const spec::RunSpec& spec, const spec::DataDescription& description,
                                              const BatchShare& share) {
  data::LoaderOptions options{.batch = spec.evaluation.batch,
                              .seed = static_cast<uint64_t>(spec.seed),
                              .augment = {},
                              .mix = {},
                              .statistics = description.statistics};
  set_workers(options, spec, description.info, share);
  return options;
}

int64_t loader_bytes(const data::LoaderOptions& options, const spec::DataDescription& description) {
  const data::DatasetInfo& info = description.info;
  const int64_t slots = options.workers == 0 ? 1 : options.prefetch + 1;
  // A worker decodes and rotates one image at a time.
  const int64_t scratch = info.sample_dtype == DType::u8 ? 5 * info.sample_bytes() : 0;
  return slots * bytes_of_batch(options, info) + std::max(1, options.workers) * scratch;
}

}  // namespace weft::program
