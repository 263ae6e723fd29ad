#include "weft/data/validation_part.h"

#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/data/dataset/stratified_split.h"
#include "weft/data/formats/text.h"

namespace weft::data {

namespace {

/// Some samples of a data set that several parts share. One of the parts, `keeps_account`, answers for the cache and
/// for damaged samples of all of them.
class PartOfDataset : public Dataset {
 public:
  PartOfDataset(std::shared_ptr<Dataset> whole, std::vector<int64_t> indices, bool keeps_account)
      : Dataset(whole->info()), whole_(std::move(whole)), indices_(std::move(indices)), keeps_account_(keeps_account) {}

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  void get(const SampleKey& key, std::span<uint8_t> destination) const override {
    whole_->get({at(key.index), key.pass}, destination);
  }
  void get_target(const SampleKey& key, std::span<uint8_t> destination) const override {
    whole_->get_target({at(key.index), key.pass}, destination);
  }
  std::shared_ptr<const Image> picture(int64_t index) const override { return whole_->picture(at(index)); }
  int64_t cache_bytes_to_come() const override { return keeps_account_ ? whole_->cache_bytes_to_come() : 0; }
  int64_t uncached_bytes() const override { return keeps_account_ ? whole_->uncached_bytes() : 0; }
  void limit_cache(int64_t bytes) override {
    if (keeps_account_) whole_->limit_cache(bytes);
  }
  void will_need(int64_t index) const override { whole_->will_need(at(index)); }
  std::string sample_name(int64_t index) const override { return whole_->sample_name(at(index)); }
  std::filesystem::path picture_file(int64_t index) const override { return whole_->picture_file(at(index)); }
  std::optional<ChannelStatistics> known_statistics() const override { return whole_->known_statistics(); }
  int64_t damaged_samples() const override { return keeps_account_ ? whole_->damaged_samples() : 0; }
  std::vector<DamagedSample> list_damaged() const override {
    return keeps_account_ ? whole_->list_damaged() : std::vector<DamagedSample>();
  }
  std::string_view stand_in() const override { return whole_->stand_in(); }

 private:
  int64_t at(int64_t index) const { return indices_[static_cast<size_t>(index)]; }

  const std::shared_ptr<Dataset> whole_;
  const std::vector<int64_t> indices_;
  const bool keeps_account_;
};

[[noreturn]] void fail_empty(const Dataset& dataset, double share, const char* part) {
  fail(ErrorKind::usage,
       "validation = {} leaves no sample for {} of the {} in the training data '{}'; choose another share, or "
       "validation=0",
       share, part, dataset.size(), dataset.info().name);
}

TrainingParts divide_tokens(const Dataset& dataset, double share) {
  const std::span<const uint16_t> tokens = dataset.tokens();
  const auto of_validation = static_cast<size_t>(share * static_cast<double>(tokens.size()));
  const size_t window = static_cast<size_t>(dataset.info().sample_shape.elements()) + 1;
  if (of_validation < window) fail_empty(dataset, share, "validation");
  if (tokens.size() - of_validation < window) fail_empty(dataset, share, "training");
  const auto middle = tokens.end() - static_cast<std::ptrdiff_t>(of_validation);
  return {make_text_windows(dataset.info(), {tokens.begin(), middle}, /*at_random=*/true),
          make_text_windows(dataset.info(), {middle, tokens.end()}, /*at_random=*/false)};
}

/// The class of each sample; 0 where targets are no classes.
std::vector<int32_t> strata_of(const Dataset& dataset) {
  std::vector<int32_t> strata(static_cast<size_t>(dataset.size()), 0);
  if (dataset.info().target_kind() == TargetKind::sample_class)
    for (size_t index = 0; index < strata.size(); ++index) strata[index] = dataset.label(static_cast<int64_t>(index));
  return strata;
}

}  // namespace

TrainingParts set_validation_aside(std::unique_ptr<Dataset> dataset, double share, uint64_t seed) {
  if (!dataset->tokens().empty()) return divide_tokens(*dataset, share);
  const std::shared_ptr<Dataset> whole = std::move(dataset);
  const std::vector<bool> is_validation = stratified_split(strata_of(*whole), share, seed);
  std::vector<int64_t> training, validation;
  for (size_t index = 0; index < is_validation.size(); ++index)
    (is_validation[index] ? validation : training).push_back(static_cast<int64_t>(index));
  if (validation.empty()) fail_empty(*whole, share, "validation");
  if (training.empty()) fail_empty(*whole, share, "training");
  return {std::make_unique<PartOfDataset>(whole, std::move(training), true),
          std::make_unique<PartOfDataset>(whole, std::move(validation), false)};
}

}  // namespace weft::data
