#include "weft/data/kept_datasets.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace weft::data {

namespace {

/// Another owner of a dataset.
class SharedDataset : public Dataset {
 public:
  explicit SharedDataset(std::shared_ptr<Dataset> all) : Dataset(all->info()), all_(std::move(all)) {}

  int64_t size() const override { return all_->size(); }
  void get(const SampleKey& key, std::span<uint8_t> destination) const override { all_->get(key, destination); }
  void get_target(const SampleKey& key, std::span<uint8_t> destination) const override {
    all_->get_target(key, destination);
  }
  std::shared_ptr<const Image> picture(int64_t index) const override { return all_->picture(index); }
  int64_t cache_bytes_to_come() const override { return all_->cache_bytes_to_come(); }
  int64_t uncached_bytes() const override { return all_->uncached_bytes(); }
  void limit_cache(int64_t bytes) override { all_->limit_cache(bytes); }
  void will_need(int64_t index) const override { all_->will_need(index); }
  std::string sample_name(int64_t index) const override { return all_->sample_name(index); }
  std::filesystem::path picture_file(int64_t index) const override { return all_->picture_file(index); }
  std::span<const uint16_t> tokens() const override { return all_->tokens(); }
  std::vector<int64_t> class_counts() const override { return all_->class_counts(); }
  std::optional<ChannelStatistics> known_statistics() const override { return all_->known_statistics(); }
  int64_t damaged_samples() const override { return all_->damaged_samples(); }
  std::vector<DamagedSample> list_damaged() const override { return all_->list_damaged(); }
  std::string_view stand_in() const override { return all_->stand_in(); }

 private:
  const std::shared_ptr<Dataset> all_;
};

class KeptDatasets {
 public:
  using Key = std::tuple<std::string, Split, std::string>;  // spec, split, encoding

  std::shared_ptr<Dataset> find(const Key& key) {
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const auto& one) { return one.first == key; });
    if (found == kept_.end()) return nullptr;
    std::rotate(found, found + 1, kept_.end());
    return kept_.back().second;
  }
  void add(Key key, std::shared_ptr<Dataset> dataset) {
    constexpr size_t kMost = 4;
    if (kept_.size() == kMost) kept_.erase(kept_.begin());
    kept_.emplace_back(std::move(key), std::move(dataset));
  }

 private:
  std::vector<std::pair<Key, std::shared_ptr<Dataset>>> kept_;  // what was asked for last stands last
};

}  // namespace

std::vector<DatasetKind> keep_datasets(const std::vector<DatasetKind>& kinds) {
  const auto kept = std::make_shared<KeptDatasets>();
  std::vector<DatasetKind> keeping = kinds;
  for (DatasetKind& kind : keeping)
    kind.open = [kept, open = kind.open](const DataSpec& spec, Split split,
                                         const std::string& encoding) -> std::unique_ptr<Dataset> {
      const KeptDatasets::Key key{print_data_spec(spec), split, encoding};
      std::shared_ptr<Dataset> dataset = kept->find(key);
      if (!dataset) {
        std::unique_ptr<Dataset> opened = open(spec, split, encoding);
        if (opened->info().decoded || opened->cache_bytes_to_come() > 0 || opened->uncached_bytes() > 0) return opened;
        dataset = std::move(opened);
        kept->add(key, dataset);
      }
      return std::make_unique<SharedDataset>(std::move(dataset));
    };
  return keeping;
}

}  // namespace weft::data
