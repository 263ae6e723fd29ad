#include "weft/launch/launch_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace weft::launch {

namespace {

/// What stands between two texts; empty where they do not.
std::string between(std::string_view text, std::string_view before, std::string_view after) {
  const size_t begin = text.find(before);
  if (begin == std::string_view::npos) return "";
  const size_t end = text.find(after, begin + before.size());
  if (end == std::string_view::npos) return "";
  return std::string(text.substr(begin + before.size(), end - begin - before.size()));
}

constexpr size_t kFewestDashes = 70;  // mpirun writes 74
constexpr size_t kMostLines = 100;    // of a paragraph; what is longer is none of mpirun's
constexpr int64_t kAlikeInARow = 3;   // lines that are passed on before they are counted

/// Where the dashes begin with which the line ends; its end where these are few.
size_t dashes_in(std::string_view line) {
  const size_t last = line.find_last_not_of('-');
  const size_t begin = last == std::string_view::npos ? 0 : last + 1;
  return line.size() - begin >= kFewestDashes ? begin : line.size();
}

/// That a process has failed, which it has said itself.
bool says_nothing_new(const std::string& text) {
  for (const char* part :
       {"MPI_ABORT was invoked on rank", "Primary job  terminated normally",
        "mpirun detected that one or more processes exited with non-zero status", "mpirun noticed that process rank"})
    if (text.find(part) != std::string::npos) return true;
  return false;
}

/// "[host:123] 2 more processes have sent help message ..." and what follows it.
bool is_about_messages(std::string_view line) {
  return line.find(" sent help message help-") != std::string_view::npos ||
         line.find("orte_base_help_aggregate") != std::string_view::npos;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace

std::optional<LostRank> silent_rank_in(std::string_view line) {
  const size_t end = line.find("' has given no sign of life");
  if (end == std::string_view::npos) return std::nullopt;
  constexpr std::string_view kRank = "rank ", kHost = " on host '";
  const size_t begin = line.rfind(kRank, end);
  const size_t host = begin == std::string_view::npos ? begin : line.find(kHost, begin);
  if (host == std::string_view::npos || host > end) return std::nullopt;
  return LostRank{.rank = std::atoi(std::string(line.substr(begin + kRank.size())).c_str()),
                  .host = std::string(line.substr(host + kHost.size(), end - host - kHost.size()))};
}

std::optional<LostRank> lost_rank_in(const std::vector<std::string>& paragraph) {
  const std::string text = joined(paragraph);
  if (const std::string rank = between(text, "mpirun noticed that process rank ", " with PID"); !rank.empty()) {
    const std::string signal = between(text, " exited on signal ", ".\n");
    return LostRank{.rank = std::atoi(rank.c_str()),
                    .host = between(text, " on node ", " exited on signal"),
                    .reason = fmt::format("was ended by signal {}", signal)};
  }
  if (text.find("ORTE has lost communication with a remote daemon") != std::string::npos) {
    const size_t remote = text.find("Remote daemon:");
    if (remote == std::string::npos) return std::nullopt;
    return LostRank{.rank = -1,
                    .host = between(std::string_view(text).substr(remote), " on node ", "\n"),
                    .reason = "cannot be reached any more, or its daemon was killed"};
  }
  return std::nullopt;
}

std::string unstarted_rank_in(const std::vector<std::string>& paragraph) {
  const std::string text = joined(paragraph);
  if (text.find(" was unable to ") == std::string::npos) return "";
  const std::string reason = between(text, "\nError: ", "\n"), rank = between(text, "process rank ", ".");
  if (reason.empty() || rank.empty()) return "";
  return fmt::format("rank {} on host '{}' could not be started: {}", rank, between(text, "\nNode: ", "\n"), reason);
}

void LaunchReports::add(std::string_view text) {
  rest_ += text;
  for (size_t end = 0; (end = rest_.find('\n')) != std::string::npos;) {
    const std::string line = rest_.substr(0, end);
    rest_.erase(0, end + 1);
    add_line(line);
  }
}

void LaunchReports::pass_on(const std::string& line) {
  if (line != last_line_) {
    tell_repeats();
    last_line_ = line;
  }
  if (++alike_ <= kAlikeInARow) pass_on_(line);
}

void LaunchReports::tell_repeats() {
  if (alike_ > kAlikeInARow) pass_on_(fmt::format("(the last line {} times more)", alike_ - kAlikeInARow));
  alike_ = 0;
}

void LaunchReports::add_line(const std::string& line) {
  // mpirun's paragraphs may come in the middle of a line of a rank's.
  if (const size_t dashes = dashes_in(line); dashes < line.size()) {
    if (dashes > 0) add_line(line.substr(0, dashes));
    paragraph_.push_back(line.substr(dashes));
    if (paragraph_.size() > 1) end_paragraph();
    return;
  }
  if (const std::optional<LostRank> silent = silent_rank_in(line)) {
    const auto known = std::find_if(missed_.begin(), missed_.end(),
                                    [&](const auto& missed) { return missed.first.rank == silent->rank; });
    if (known == missed_.end())
      missed_.emplace_back(*silent, 1);
    else
      ++known->second;
  }
  const std::string cut_off = between(line, ": host '", "' is cut off from all others");
  if (!cut_off.empty() && !cut_off_)
    cut_off_ = LostRank{.rank = -1, .host = cut_off, .reason = "is cut off from all others"};
  // Where ranks that have started end meanwhile, mpirun leaves its paragraph out.
  const std::string limit = between(line, "ORTE_ERROR_LOG: The system limit on ", " in file ");
  if (!limit.empty() && unstarted_.empty())
    unstarted_ =
        fmt::format("a rank on host '{}' could not be started: the system limit on {}", between(line, "[", ":"), limit);
  if (paragraph_.size() > kMostLines) end_paragraph();
  if (!paragraph_.empty())
    paragraph_.push_back(line);
  else if (!is_about_messages(line))
    pass_on(line);
}

void LaunchReports::end_paragraph() {
  const std::optional<LostRank> lost = lost_rank_in(paragraph_);
  if (lost && !told_by_launcher_) told_by_launcher_ = lost;
  const std::string unstarted = unstarted_rank_in(paragraph_);
  if (!unstarted.empty()) unstarted_ = unstarted;
  if (!lost && unstarted.empty() && !says_nothing_new(joined(paragraph_)))
    for (const std::string& line : paragraph_) pass_on(line);
  paragraph_.clear();
}

void LaunchReports::finish() {
  if (!rest_.empty()) add_line(std::exchange(rest_, {}));
  end_paragraph();
  tell_repeats();
}

std::optional<LostRank> LaunchReports::lost() const {
  const auto most = std::max_element(missed_.begin(), missed_.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  // That a daemon is gone may follow from what ranks have found.
  if (told_by_launcher_ && (told_by_launcher_->rank >= 0 || (most == missed_.end() && !cut_off_)))
    return told_by_launcher_;
  if (most == missed_.end()) return cut_off_;
  return most->first;
}

}  // namespace weft::launch
