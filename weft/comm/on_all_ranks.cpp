#include "weft/comm/on_all_ranks.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/error_of.h"
#include "weft/comm/exchange.h"
#include "weft/comm/patience.h"

namespace weft::comm {

namespace {

/// What became of work on a rank, as a text: empty, or a letter for the kind and the message.
std::string outcome_of(const std::function<void()>& work) {
  try {
    work();
    return "";
  } catch (...) {
    const Error error = error_of(std::current_exception());
    return std::string(1, static_cast<char>('a' + static_cast<int>(error.kind()))) + error.what();
  }
}

[[noreturn]] void throw_shared(const std::string& outcome, const std::string& rank) {
  throw SharedError(static_cast<ErrorKind>(outcome.front() - 'a'),
                    (rank.empty() ? "" : rank + ": ") + outcome.substr(1));
}

}  // namespace

int ranks_of_host(const comm::Communicator* ranks) {
  if (ranks == nullptr) return 1;
  const std::vector<comm::Member>& members = ranks->members();
  const int host = members[static_cast<size_t>(ranks->rank())].host_index;
  return static_cast<int>(std::count_if(members.begin(), members.end(),
                                        [&](const comm::Member& member) { return member.host_index == host; }));
}

void on_all_ranks(comm::Communicator* ranks, std::string_view what, const std::function<void()>& work) {
  if (ranks == nullptr) return work();
  const std::vector<std::string> outcomes = comm::all_gather(*ranks, outcome_of(work), what);
  const auto failed =
      std::find_if(outcomes.begin(), outcomes.end(), [](const std::string& outcome) { return !outcome.empty(); });
  if (failed == outcomes.end()) return;
  const bool alike =
      std::all_of(outcomes.begin(), outcomes.end(), [&](const std::string& outcome) { return outcome == *failed; });
  const auto rank = static_cast<int>(failed - outcomes.begin());
  throw_shared(*failed, alike ? "" : comm::name_of_rank(*ranks, rank));
}

std::string decided_by_first(comm::Communicator* ranks, std::string_view what,
                             const std::function<std::string()>& decide) {
  if (ranks == nullptr) return decide();
  std::string text;
  std::string outcome;
  if (is_first(ranks)) outcome = outcome_of([&] { text = decide(); });
  outcome = comm::broadcast(*ranks, 0, outcome, what);
  if (!outcome.empty()) throw_shared(outcome, "");
  return comm::broadcast(*ranks, 0, text, what);
}

}  // namespace weft::comm
