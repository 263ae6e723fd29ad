// What exchanges between ranks of one host take in memory that they share, as it was measured.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

namespace weft {

class SharedExchanges {
 public:
  /// An op ("all_gather"), the ranks that exchange, all at once, and the bytes of one rank's operand.
  using Key = std::tuple<std::string, int, int64_t>;

  bool empty() const { return times_.empty(); }
  /// Seconds, of the rank that takes the longest. Replaces what is known of the same.
  void add(const Key& exchange, double seconds) { times_[exchange] = seconds; }
  void add(const SharedExchanges& others);
  const std::map<Key, double>& all() const { return times_; }

  /// Between two measured sizes a power of the bytes; of fewer bytes than were measured as long as of the fewest; of
  /// more by the rate of the most. Of a number of ranks that was not measured as of the next larger one; beyond the
  /// largest, longer by as much as there are more. Nothing where the op was not measured.
  std::optional<double> seconds(std::string_view op, int ranks, int64_t bytes) const;

 private:
  std::map<Key, double> times_;
};

}  // namespace weft
