// Samples that turned out damaged: counted, named, and allowed up to a limit.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "weft/data/dataset/dataset.h"

namespace weft::data {

/// How many samples may be damaged: "25", or a share of them, "1%". Error(usage), beginning with `where`.
int64_t parse_damage_limit(const std::string& text, int64_t samples, const std::string& where);
inline constexpr const char* kDamageOption = "max_bad_records";

class DamageLog {
 public:
  /// For messages: "[packed] 3 of the 500 train records are damaged, ...; copy the shards again".
  struct Words {
    std::string kind, things, next_step;  // "packed", "train records", "copy the shards again"
  };
  DamageLog(int64_t samples, int64_t limit, Words words)
      : samples_(samples), limit_(limit), words_(std::move(words)), known_(static_cast<size_t>(samples)) {}

  int64_t limit() const { return limit_; }
  bool has(int64_t number) const { return known_[static_cast<size_t>(number)]; }
  /// Counts a sample once. Error(data), naming some, where there are now more than the limit. Thread-safe, as all.
  void add(int64_t number, const std::string& message) const;
  int64_t count() const { return count_; }
  /// By number.
  std::vector<DamagedSample> all() const;

 private:
  void require_limit() const;

  int64_t samples_, limit_;
  Words words_;
  mutable std::vector<std::atomic<bool>> known_;
  mutable std::mutex mutex_;
  mutable std::vector<DamagedSample> damaged_;
  mutable std::atomic<int64_t> count_{0};
};

}  // namespace weft::data
