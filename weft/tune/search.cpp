#include "weft/tune/search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "weft/base/error.h"

namespace weft::tune {

Search::Search(Space space, const SearchOptions& options)
    : space_(std::move(space)), options_(options), searcher_(make_searcher(options.searcher, options.options)) {
  if (space_.size() == 0) fail(ErrorKind::usage, "there is nothing to search: the space has no dimensions");
  searcher_->check(space_);
}

std::optional<Asked> Search::ask() {
  const SearchState state{space_, history_, options_.seed};
  std::optional<Proposal> proposal = options_.repeats ? searcher_->ask(state) : propose_new(*searcher_, state);
  if (!proposal) return std::nullopt;
  Asked asked{static_cast<int64_t>(history_.size()), space_.values(proposal->point)};
  history_.push_back({.point = std::move(proposal->point), .generation = proposal->generation});
  return asked;
}

Trial& Search::running(int64_t number) {
  if (number < 0 || number >= static_cast<int64_t>(history_.size()))
    fail(ErrorKind::usage, "there is no trial {}: {} were asked for", number, history_.size());
  Trial& trial = history_[static_cast<size_t>(number)];
  if (trial.state != Trial::State::running) fail(ErrorKind::usage, "trial {} has been told already", number);
  return trial;
}

void Search::tell(int64_t number, std::vector<double> losses) {
  Trial& trial = running(number);
  if (static_cast<int64_t>(losses.size()) != options_.options.objectives)
    fail(ErrorKind::usage, "trial {} wants {} losses, got {}", number, options_.options.objectives, losses.size());
  const bool is_finite = std::all_of(losses.begin(), losses.end(), [](double loss) { return std::isfinite(loss); });
  trial.state = is_finite ? Trial::State::finished : Trial::State::failed;
  if (is_finite) trial.losses = std::move(losses);
}

void Search::tell_failed(int64_t number) { running(number).state = Trial::State::failed; }

Found Search::found(size_t number) const {
  return {static_cast<int64_t>(number), space_.values(history_[number].point), history_[number].losses};
}

std::optional<Found> Search::best() const {
  std::optional<size_t> best;
  for (size_t number = 0; number < history_.size(); ++number)
    if (history_[number].is_finished() && (!best || history_[number].losses.front() < history_[*best].losses.front()))
      best = number;
  return best ? std::optional(found(*best)) : std::nullopt;
}

std::vector<Found> Search::front() const {
  std::vector<Found> front;
  for (size_t number = 0; number < history_.size(); ++number) {
    const Trial& trial = history_[number];
    if (!trial.is_finished()) continue;
    const bool is_beaten = std::any_of(history_.begin(), history_.end(), [&](const Trial& other) {
      return other.is_finished() && dominates(other.losses, trial.losses);
    });
    if (!is_beaten) front.push_back(found(number));
  }
  return front;
}

}  // namespace weft::tune
