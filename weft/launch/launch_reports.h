// What mpirun and its ranks write on stderr, passed on line by line, less what mpirun adds to what ranks have said
// already, and with lines that come again and again counted; and which rank was lost or could not be started, as it
// tells.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::launch {

struct LostRank {
  int rank = -1;            // -1: a whole host, to which mpirun has lost the way
  std::string host;         // as the rank or mpirun calls it
  std::string reason = {};  // "was ended by signal 9 (Killed)"; empty where ranks have said it
};

/// "... rank 2 on host 'b' has given no sign of life ...", as ranks say it of another (comm/patience.h).
std::optional<LostRank> silent_rank_in(std::string_view line);
/// The paragraphs between dashes that mpirun writes.
std::optional<LostRank> lost_rank_in(const std::vector<std::string>& paragraph);
/// "rank 10 on host 'a' could not be started: system limit exceeded on number of processes that can be started", of
/// such a paragraph; empty for others.
std::string unstarted_rank_in(const std::vector<std::string>& paragraph);

class LaunchReports {
 public:
  explicit LaunchReports(std::function<void(std::string_view line)> pass_on) : pass_on_(std::move(pass_on)) {}

  void add(std::string_view text);
  /// Passes on what has no end yet.
  void finish();
  /// Who was lost: as mpirun says, else whom most of the ranks missed.
  std::optional<LostRank> lost() const;
  /// As unstarted_rank_in() has it, or without its number where mpirun does not say it; empty where mpirun could start
  /// all.
  const std::string& unstarted() const { return unstarted_; }

 private:
  void add_line(const std::string& line);
  void end_paragraph();
  void pass_on(const std::string& line);
  void tell_repeats();

  const std::function<void(std::string_view line)> pass_on_;
  std::string rest_;                    // of a line
  std::vector<std::string> paragraph_;  // of mpirun's, with its first dashes, while it is not at its end
  std::string last_line_;               // that was passed on,
  int64_t alike_ = 0;                   // and how many times in a row it came
  std::optional<LostRank> told_by_launcher_;
  std::string unstarted_;
  std::vector<std::pair<LostRank, int>> missed_;  // and by how many
  std::optional<LostRank> cut_off_;               // the host of a rank that hears nobody
};

}  // namespace weft::launch
