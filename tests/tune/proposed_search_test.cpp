// What weft proposes to search, by topics.
#include "weft/tune/ranges/proposed_search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/files_for_tests.h"
#include "weft/tune/begin_study.h"
#include "weft/tune/ranges/default_space.h"
#include "weft/tune/ranges/recipe_space.h"
#include "weft/tune/trials/trial_plan.h"

namespace weft::tune {
namespace {

spec::RunSpec spec_of(const std::string& model) {
  spec::RunSpec spec;
  spec.data = "fashion-mnist";
  spec.model.name = model;
  spec.epochs = 6;
  spec.batch = 128;
  return spec;
}

data::DatasetInfo photos(int64_t channels = 3, int64_t height = 32) {
  data::DatasetInfo info;
  info.name = "photos";
  info.task = "classification";
  info.sample_dtype = DType::u8;
  info.sample_shape = {channels, height, height};
  info.classes = 10;
  return info;
}

/// "choice:none,random"; empty where the key is not proposed.
std::string range_of(const ProposedSearch& proposal, const std::string& key) {
  for (const RangeText& range : proposal.ranges)
    if (range.key == key) return print_range(range).substr(key.size() + 1);
  return "";
}

bool sets(const ProposedSearch& proposal, const std::string& assignment) {
  return std::find(proposal.set.begin(), proposal.set.end(), assignment) != proposal.set.end();
}

TEST(ProposedSearch, BatchAndImagesGrowOverThirdsOfTheRun) {
  const Library library = standard_library();
  const ProposedSearch proposal = propose_schedules(spec_of("resnet9"), photos(), library);
  EXPECT_TRUE(sets(proposal, "batch_schedule.boundaries=[2,4]"));
  EXPECT_TRUE(sets(proposal, "image_schedule.boundaries=[2,4]"));
  EXPECT_EQ(range_of(proposal, "batch_schedule.batches"),
            "choice:[128,128,128]|[64,128,128]|[32,64,128]|[64,128,256]|[128,128,32]");
  EXPECT_EQ(range_of(proposal, "image_schedule.sizes"), "choice:[32,32,32]|[24,28,32]|[24,24,32]|[16,24,32]");
  EXPECT_EQ(range_of(proposal, "momentum_schedule.name"), "choice:constant,one_cycle");
}

TEST(ProposedSearch, BatchesAreNoLargerThanTheTrainingPart) {
  const Library library = standard_library();
  spec::RunSpec spec = spec_of("resnet9");
  spec.validation = "0.9";  // 6,000 samples are left
  spec.batch = 4096;
  EXPECT_EQ(range_of(propose_schedules(spec, photos(), library), "batch_schedule.batches").find("8192"),
            std::string::npos);
}

TEST(ProposedSearch, ImagesOfAModelForOneSizeDoNotGrow) {
  const Library library = standard_library();
  const ProposedSearch proposal = propose_schedules(spec_of("lenet5"), photos(1, 28), library);
  EXPECT_EQ(range_of(proposal, "image_schedule.sizes"), "");
  EXPECT_NE(range_of(proposal, "batch_schedule.batches"), "");
}

TEST(ProposedSearch, AnOptimizerWithoutMomentumHasNoneThatMoves) {
  const Library library = standard_library();
  spec::RunSpec spec = spec_of("resnet9");
  spec.optimizer.name = "adamw";
  EXPECT_EQ(range_of(propose_schedules(spec, photos(), library), "momentum_schedule.name"), "");
}

TEST(ProposedSearch, AOneCycleIsNotProposedBesideAWarmup) {
  const Library library = standard_library();
  spec::RunSpec spec = spec_of("resnet9");
  EXPECT_EQ(range_of(propose_schedules(spec, photos(), library), "schedule.name"),
            "choice:cosine,polynomial,one_cycle");
  spec.schedule.warmup_epochs = 1;
  EXPECT_EQ(range_of(propose_schedules(spec, photos(), library), "schedule.name"), "choice:cosine,polynomial");
}

TEST(ProposedSearch, SchedulesOfTheRecipeStay) {
  const Library library = standard_library();
  spec::RunSpec spec = spec_of("resnet9");
  spec.batch_schedule = {.boundaries = {1}, .batches = {16, 32}};
  spec.image_schedule = {.boundaries = {}, .sizes = {16}};
  spec.optimizer.momentum_schedule.name = "one_cycle";
  const ProposedSearch proposal = propose_schedules(spec, photos(), library);
  EXPECT_TRUE(proposal.set.empty());
  for (const char* key : {"batch_schedule.batches", "image_schedule.sizes", "momentum_schedule.name"})
    EXPECT_EQ(range_of(proposal, key), "");
}

TEST(ProposedSearch, AugmentationDependsOnTheImages) {
  const ProposedSearch colored = propose_augmentation(spec_of("resnet9"), photos());
  EXPECT_EQ(range_of(colored, "augment.crop_padding"), "choice:0,2,4");
  EXPECT_EQ(range_of(colored, "augment.cutout"), "choice:0,8,16");
  EXPECT_EQ(range_of(colored, "augment.hue"), "choice:0,0.05,0.1");
  const ProposedSearch grey = propose_augmentation(spec_of("resnet9"), photos(1, 28));
  EXPECT_EQ(range_of(grey, "augment.hue"), "") << "grey has no hue";
  EXPECT_EQ(range_of(grey, "augment.mixup"), "choice:0,0.2");
}

TEST(ProposedSearch, CropsOfAnySizeStayCropsOfAnySize) {
  spec::RunSpec spec = spec_of("resnet9");
  spec.augment.resized_crop = 0.35;
  const ProposedSearch proposal = propose_augmentation(spec, photos());
  EXPECT_EQ(range_of(proposal, "augment.crop_padding"), "");
  EXPECT_EQ(range_of(proposal, "augment.resized_crop"), "choice:0.08,0.35,0.6,0.9");
}

TEST(ProposedSearch, TablesHaveNoAugmentation) {
  data::DatasetInfo table = photos();
  table.name = "table";
  table.sample_dtype = DType::f32;
  table.sample_shape = {7};
  expect_error([&] { propose_augmentation(spec_of("mlp"), table); }, ErrorKind::usage,
               {"--propose augmentation", "'table'"});
}

StudyRequest request_of(const std::vector<std::string>& proposals, const std::vector<std::string>& ranges = {}) {
  StudyRequest request{.recipe =
                           "data = \"fashion-mnist\"\nepochs = 6\nbatch = 128\nvalidation = 0.1\n[model]\nname = "
                           "\"resnet9\"\n",
                       .proposals = proposals};
  for (const std::string& range : ranges) request.ranges.push_back(parse_range(range));
  return request;
}

std::vector<std::string> names_of(const StudySettings& settings) {
  std::vector<std::string> names;
  for (const Dimension& dimension : settings.space.dimensions()) names.push_back(dimension.name);
  return names;
}

bool has(const StudySettings& settings, const std::string& key) {
  const std::vector<std::string> names = names_of(settings);
  return std::find(names.begin(), names.end(), key) != names.end();
}

TEST(ProposedSearch, EveryValueOfItIsARecipe) {
  const Library library = standard_library();
  const StudySettings settings =
      study_settings(library, request_of({"training", "schedules", "augmentation"}), [](const std::string&) {});
  for (const Dimension& dimension : settings.space.dimensions())
    for (size_t choice = 0; choice < dimension.choices.size(); ++choice) {
      spec::RunSpec spec = base_spec(settings, library);
      apply_values(spec, {{dimension.name, dimension.choices[choice]}}, library);
      EXPECT_NO_THROW(spec::resolve(spec, library)) << dimension.name;
    }
  EXPECT_TRUE(has(settings, "model.width"));
  EXPECT_TRUE(has(settings, "augment.flip"));
  EXPECT_FALSE(has(settings, "batch")) << "the batch changes during the run";
}

TEST(ProposedSearch, ARangeThatIsGivenReplacesTheProposedOne) {
  const Library library = standard_library();
  const StudySettings settings =
      study_settings(library, request_of({"schedules"}, {"batch=choice:32,64", "optimizer.learning_rate=log:0.01:0.1"}),
                     [](const std::string&) {});
  EXPECT_FALSE(has(settings, "batch_schedule.batches"));
  EXPECT_TRUE(has(settings, "image_schedule.sizes"));
  EXPECT_EQ(settings.space[*settings.space.find("optimizer.learning_rate")].high, 0.1);
  const std::vector<std::string> names = names_of(settings);
  EXPECT_EQ(std::count(names.begin(), names.end(), "optimizer.learning_rate"), 1);
}

TEST(ProposedSearch, AnUnknownTopicIsNamed) {
  const Library library = standard_library();
  expect_error([&] { study_settings(library, request_of({"schedule"}), [](const std::string&) {}); }, ErrorKind::usage,
               {"--propose schedule", "did you mean 'schedules'"});
}

}  // namespace
}  // namespace weft::tune
