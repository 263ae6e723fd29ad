// Reinforcement learning: a policy network chooses the values of a trial one after the other, and learns from what came
// of them (policy_network.h). Ranges of numbers become kLevels pieces, of which one is chosen and a number in it drawn.
#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/base/error.h"
#include "weft/tune/searchers/entries.h"
#include "weft/tune/searchers/policy_network.h"
#include "weft/tune/space/random.h"

namespace weft::tune {

namespace {

constexpr int64_t kLevels = 8;

class PpoSearcher : public Searcher {
 public:
  explicit PpoSearcher(const Library& library) : library_(library) {}

  void check(const Space& space) const override {
    if (space.size() == 0) fail(ErrorKind::usage, "the searcher 'ppo' has nothing to decide; give a range");
  }

  std::optional<Proposal> ask(const SearchState& state) const override {
    const Space& space = state.space;
    PolicyNetwork& policy = learned(choices_of(space), state.seed, samples_of(state));
    Random random(state.seed, static_cast<int64_t>(state.history.size()));
    std::vector<int64_t> decisions(space.size(), 0);
    Point point(space.size());
    for (size_t index = 0; index < space.size(); ++index) {
      decisions[index] = drawn(policy.log_probabilities(decisions)[index], random.uniform());
      const double inside = random.uniform();
      if (space.is_active(point, index)) point[index] = coordinate(space, index, decisions[index], inside);
    }
    return Proposal{point};
  }

 private:
  static int64_t choices_of(const Space& space, size_t index) {
    const size_t count = space.count(index);
    return space[index].kind == Dimension::Kind::choice || (count > 0 && count <= kLevels) ? static_cast<int64_t>(count)
                                                                                           : kLevels;
  }
  static std::vector<int64_t> choices_of(const Space& space) {
    std::vector<int64_t> choices;
    for (size_t index = 0; index < space.size(); ++index) choices.push_back(choices_of(space, index));
    return choices;
  }

  /// `inside`: where in the piece, from 0 to 1.
  static double coordinate(const Space& space, size_t index, int64_t decision, double inside) {
    const auto count = static_cast<double>(choices_of(space, index));
    return space.from_unit(index, (static_cast<double>(decision) + inside) / count);
  }
  static int64_t decision_of(const Space& space, size_t index, double coordinate) {
    const int64_t count = choices_of(space, index);
    const double unit = space.to_unit(index, coordinate);
    return std::clamp<int64_t>(static_cast<int64_t>(unit * static_cast<double>(count)), 0, count - 1);
  }

  static int64_t drawn(const std::vector<double>& log_probabilities, double uniform) {
    double sum = 0;
    for (size_t value = 0; value < log_probabilities.size(); ++value) {
      sum += std::exp(log_probabilities[value]);
      if (uniform < sum) return static_cast<int64_t>(value);
    }
    return static_cast<int64_t>(log_probabilities.size()) - 1;
  }

  /// Of the trials that have ended. An advantage is the share of the trials before that did worse, from -1 to 1: losses
  /// of any size count alike.
  static std::vector<PolicyNetwork::Sample> samples_of(const SearchState& state) {
    std::vector<PolicyNetwork::Sample> samples;
    std::vector<double> losses;
    for (const Trial& trial : state.history) {
      if (trial.state == Trial::State::running) continue;
      const double loss = trial.is_finished() ? trial.losses.front() : std::numeric_limits<double>::infinity();
      losses.push_back(loss);
      double worse = 0;
      for (const double other : losses) worse += other > loss ? 1 : other == loss ? 0.5 : 0;
      PolicyNetwork::Sample sample;
      sample.advantage = 2 * worse / static_cast<double>(losses.size()) - 1;
      for (size_t index = 0; index < state.space.size(); ++index) {
        const auto& at = trial.point[index];
        sample.counts.push_back(at.has_value());
        sample.decisions.push_back(at ? decision_of(state.space, index, *at) : 0);
      }
      samples.push_back(std::move(sample));
    }
    return samples;
  }

  /// A network that has learned from all whole batches of the samples. What the last one has learned from stays, where
  /// these samples begin with it: a network that learns from them anew becomes the same.
  PolicyNetwork& learned(const std::vector<int64_t>& choices, int64_t seed,
                         const std::vector<PolicyNetwork::Sample>& samples) const {
    const bool goes_on = policy_ != nullptr && choices == choices_ && seed == seed_ &&
                         learned_.size() <= samples.size() &&
                         std::equal(learned_.begin(), learned_.end(), samples.begin());
    if (!goes_on) {
      policy_ = std::make_unique<PolicyNetwork>(library_, choices, static_cast<uint64_t>(seed));
      choices_ = choices;
      seed_ = seed;
      learned_.clear();
    }
    while (learned_.size() + PolicyNetwork::kBatch <= samples.size()) {
      const auto first = samples.begin() + static_cast<std::ptrdiff_t>(learned_.size());
      const std::vector<PolicyNetwork::Sample> batch(first, first + PolicyNetwork::kBatch);
      policy_->learn(batch);
      learned_.insert(learned_.end(), batch.begin(), batch.end());
    }
    return *policy_;
  }

  const Library& library_;
  mutable std::unique_ptr<PolicyNetwork> policy_;  // of these choices and this seed
  mutable std::vector<int64_t> choices_;
  mutable int64_t seed_ = 0;
  mutable std::vector<PolicyNetwork::Sample> learned_;
};

}  // namespace

std::unique_ptr<Searcher> make_ppo_searcher(const SearcherOptions& options) {
  if (options.library == nullptr)
    fail(ErrorKind::usage, "the searcher 'ppo' trains a network: give it a library, such as standard_library()");
  return std::make_unique<PpoSearcher>(*options.library);
}

}  // namespace weft::tune
