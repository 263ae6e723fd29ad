#include "weft/tune/ranges/proposed_search.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/program/image_sizes.h"
#include "weft/spec/recipe.h"
#include "weft/tune/ranges/default_space.h"

namespace weft::tune {

namespace {

/// What divides the heights of smaller images: kernels like multiples.
int64_t height_unit(int64_t height) { return height >= 16 ? 4 : 1; }

/// A range that is proposed, not written by anybody.
RangeText proposed(const std::string& key, RangeText::Kind kind, std::vector<std::string> arguments) {
  return {.key = key, .kind = kind, .arguments = std::move(arguments), .where = "the proposed range"};
}

RangeText choices_of(const std::string& key, std::vector<std::string> choices) {
  return proposed(key, RangeText::Kind::choice, std::move(choices));
}

/// "[16,32,64]"
std::string list_text(const std::vector<int64_t>& values) { return fmt::format("[{}]", fmt::join(values, ",")); }

/// The ends of the first and the second third of the run, in epochs.
std::string thirds(const spec::RunSpec& spec) {
  const auto rounded = [](double epoch) { return std::round(100 * epoch) / 100; };
  return fmt::format("[{},{}]", rounded(spec.epochs / 3), rounded(2 * spec.epochs / 3));
}

void add_batches(const spec::RunSpec& spec, int64_t samples, ProposedSearch& proposal) {
  const int64_t batch = spec.batch;
  if (!spec.batch_schedule.boundaries.empty() || batch < 8) return;
  proposal.set.push_back("batch_schedule.boundaries=" + thirds(spec));
  proposal.set.push_back("batch_schedule.batches=" + list_text({batch, batch, batch}));
  std::vector<std::string> courses;
  for (const auto& course : {std::vector{batch, batch, batch},
                             {batch / 2, batch, batch},
                             {batch / 4, batch / 2, batch},
                             {batch / 2, batch, batch * 2},
                             {batch, batch, batch / 4}})
    if (*std::max_element(course.begin(), course.end()) <= samples) courses.push_back(list_text(course));
  proposal.ranges.push_back(choices_of("batch_schedule.batches", courses));
  proposal.ranges.push_back(choices_of("batch_schedule.rate_scaling", {"none", "square_root", "linear"}));
}

/// Whether the model trains on images that are so high.
bool takes_height(const Library& library, const spec::RunSpec& base, const data::DatasetInfo& info, int64_t height) {
  spec::RunSpec spec = base;
  spec.image_schedule = {.boundaries = {}, .sizes = {static_cast<double>(height)}};
  try {
    program::usable_shapes(library, spec, {.info = info, .statistics = {}});
    return true;
  } catch (const Error&) {
    return false;
  }
}

void add_images(const spec::RunSpec& spec, const data::DatasetInfo& info, const Library& library,
                ProposedSearch& proposal) {
  const bool is_fit = info.sample_dtype == DType::u8 && info.sample_shape.rank() == 3 &&
                      info.target_kind() == data::TargetKind::sample_class;
  if (!is_fit || !spec.image_schedule.sizes.empty()) return;
  const int64_t height = info.sample_shape[1];
  const int64_t unit = height_unit(height);
  const auto share = [&](double part) {
    return static_cast<int64_t>(std::llround(static_cast<double>(height / unit) * part)) * unit;
  };
  std::vector<std::string> courses = {list_text({height, height, height})};
  for (const auto& [first, second] : {std::pair(0.75, 0.875), std::pair(0.75, 0.75), std::pair(0.5, 0.75)}) {
    const int64_t low = share(first), middle = share(second);
    if (low > 0 && low < height && takes_height(library, spec, info, low) && takes_height(library, spec, info, middle))
      courses.push_back(list_text({low, middle, height}));
  }
  if (courses.size() == 1) return;
  proposal.set.push_back("image_schedule.boundaries=" + thirds(spec));
  proposal.set.push_back("image_schedule.sizes=" + courses.front());
  proposal.ranges.push_back(choices_of("image_schedule.sizes", courses));
}

void add_momentum(const spec::RunSpec& spec, const Library& library, ProposedSearch& proposal) {
  if (spec.optimizer.momentum_schedule.changes() || !reads_key(library, "optimizer.momentum", spec.optimizer.name))
    return;
  proposal.ranges.push_back(choices_of("momentum_schedule.name", {"constant", "one_cycle"}));
  proposal.ranges.push_back(proposed("momentum_schedule.low", RangeText::Kind::real, {"0.7", "0.9"}));
  proposal.ranges.push_back(proposed("momentum_schedule.high", RangeText::Kind::real, {"0.9", "0.98"}));
}

void require_images(const data::DatasetInfo& info) {
  if (info.sample_dtype != DType::u8 || info.sample_shape.rank() != 3)
    fail(ErrorKind::usage, "--propose augmentation: [augment] is for images, '{}' holds {}; propose training",
         info.name, info.item());
}

}  // namespace

const std::vector<std::string>& proposal_names() {
  static const std::vector<std::string> names = {"training", "schedules", "augmentation"};
  return names;
}

ProposedSearch propose_schedules(const spec::RunSpec& base, const data::DatasetInfo& info, const Library& library) {
  spec::RunSpec spec = base;
  spec::resolve(spec, library);
  ProposedSearch proposal;
  add_batches(spec, training_samples(spec, library), proposal);
  add_images(spec, info, library, proposal);
  add_momentum(spec, library, proposal);
  const double rate = spec.optimizer.learning_rate;
  proposal.ranges.push_back(proposed("optimizer.learning_rate", RangeText::Kind::log,
                                     {fmt::format("{:.2g}", rate / 4), fmt::format("{:.2g}", rate * 4)}));
  std::vector<std::string> forms = {"cosine", "polynomial"};
  // A one_cycle has a warm-up of its own.
  if (spec.schedule.warmup_epochs == 0 && spec.schedule.warmup_steps == 0) forms.emplace_back("one_cycle");
  proposal.ranges.push_back(choices_of("schedule.name", forms));
  return proposal;
}

ProposedSearch propose_augmentation(const spec::RunSpec& base, const data::DatasetInfo& info) {
  require_images(info);
  const int64_t height = info.sample_shape[1];
  const auto pixels = [&](std::initializer_list<int64_t> parts) {
    std::vector<std::string> texts = {"0"};
    for (const int64_t part : parts)
      if (height / part > 0) texts.push_back(std::to_string(height / part));
    return texts;
  };
  ProposedSearch proposal;
  const auto add = [&](const char* key, std::vector<std::string> choices) {
    if (choices.size() > 1) proposal.ranges.push_back(choices_of(fmt::format("augment.{}", key), std::move(choices)));
  };
  add("flip", {"none", "random"});
  if (base.augment.resized_crop > 0)
    add("resized_crop", {"0.08", "0.35", "0.6", "0.9"});
  else
    add("crop_padding", pixels({16, 8}));
  add("rotate", {"0", "10", "20"});
  add("brightness", {"0", "0.2", "0.4"});
  add("contrast", {"0", "0.2", "0.4"});
  if (info.sample_shape[0] == 3) {
    add("saturation", {"0", "0.2", "0.4"});
    add("hue", {"0", "0.05", "0.1"});
  }
  add("cutout", pixels({4, 2}));
  add("erasing", {"0", "0.25"});
  if (info.target_kind() == data::TargetKind::sample_class) {
    add("mixup", {"0", "0.2"});
    add("cutmix", {"0", "1"});
  }
  return proposal;
}

ProposedSearch propose(const std::string& name, const spec::RunSpec& base, const data::DatasetInfo& info,
                       const Library& library) {
  if (name == "training") return {.set = {}, .ranges = default_ranges(base, library)};
  if (name == "schedules") return propose_schedules(base, info, library);
  if (name == "augmentation") return propose_augmentation(base, info);
  fail(ErrorKind::usage, "--propose {}: weft proposes {}{}", name, fmt::join(proposal_names(), ", "),
       suggestion(name, proposal_names()));
}

}  // namespace weft::tune
