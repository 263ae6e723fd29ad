// Reinforcement learning: a policy network chooses the values of a trial one after the other, and learns from what came
// of them (policy_network.h). Ranges of numbers become kLevels pieces, of which one is chosen and a number in it drawn.
// Trials are few and dear. While they are, a Gaussian process of the losses judges points that the policy draws, twice:
// the policy learns from them (Angermueller et al., "Model-based reinforcement learning for biological sequence
// design", ICLR 2020, "DyNA PPO"), and of kLooks draws the best one becomes the trial (planning at decision time,
// Sutton and Barto 2018, section 8.8).
#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/base/error.h"
#include "weft/base/rng.h"
#include "weft/tune/searchers/entries.h"
#include "weft/tune/searchers/gaussian_process.h"
#include "weft/tune/searchers/observations.h"
#include "weft/tune/searchers/policy_network.h"
#include "weft/tune/space/random.h"

namespace weft::tune {

namespace {

constexpr int64_t kLevels = 8;
constexpr size_t kLeastModelled = 10, kMostModelled = 128;  // trials, between which the process judges points
constexpr int kImagined = 8;                                // batches of them, behind each trial
constexpr double kEntropy = 0.01;                           // of what trials teach
constexpr double kImaginedEntropy = 0.2;
constexpr double kOptimism = 2;  // a point counts as so many deviations better than it is expected to be
constexpr int kLooks = 64;       // draws, of which one becomes a trial

class PpoSearcher : public Searcher {
 public:
  explicit PpoSearcher(const Library& library) : library_(library) {}

  void check(const Space& space) const override {
    if (space.size() == 0) fail(ErrorKind::usage, "the searcher 'ppo' has nothing to decide; give a range");
  }

  std::optional<Proposal> ask(const SearchState& state) const override {
    const auto running = std::find_if(state.history.begin(), state.history.end(),
                                      [](const Trial& trial) { return trial.state == Trial::State::running; });
    PolicyNetwork& policy =
        learned(state.space, state.seed, trials_of(state), static_cast<size_t>(running - state.history.begin()));
    Random random(state.seed, static_cast<int64_t>(state.history.size()));
    const std::optional<GaussianProcess> process = is_modelled() ? process_of(state.space, finished()) : std::nullopt;
    if (!process) return Proposal{draw(policy, state.space, random).point};
    std::optional<Point> best;
    double least = std::numeric_limits<double>::infinity();
    for (int look = 0; look < kLooks; ++look) {
      Point point = draw(policy, state.space, random).point;
      const double loss = was_tried(point, state.history) ? std::numeric_limits<double>::max()
                                                          : hoped_loss(*process, state.space, point);
      if (loss >= least) continue;
      least = loss;
      best = std::move(point);
    }
    return Proposal{*std::move(best)};
  }

 private:
  using Sample = PolicyNetwork::Sample;

  /// A trial that has ended.
  struct Seen {
    Sample sample;
    Features features;
    double loss = 0;  // infinity: it failed
    friend bool operator==(const Seen&, const Seen&) = default;
  };

  struct Drawn {
    Sample sample;  // without an advantage
    Point point;
  };

  static Drawn draw(PolicyNetwork& policy, const Space& space, Random& random) {
    Drawn drawn{.sample = {.decisions = std::vector<int64_t>(space.size(), 0), .counts = {}},
                .point = Point(space.size())};
    for (size_t index = 0; index < space.size(); ++index) {
      std::vector<int64_t>& decisions = drawn.sample.decisions;
      decisions[index] = decided(policy.log_probabilities(decisions)[index], random.uniform());
      const double inside = random.uniform();
      drawn.sample.counts.push_back(space.is_active(drawn.point, index));
      if (drawn.sample.counts.back()) drawn.point[index] = coordinate(space, index, decisions[index], inside);
    }
    return drawn;
  }

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

  static int64_t decided(const std::vector<double>& log_probabilities, double uniform) {
    double sum = 0;
    for (size_t value = 0; value < log_probabilities.size(); ++value) {
      sum += std::exp(log_probabilities[value]);
      if (uniform < sum) return static_cast<int64_t>(value);
    }
    return static_cast<int64_t>(log_probabilities.size()) - 1;
  }

  /// The share of other losses that are worse, from -1 to 1: losses of any size count alike.
  static double advantage(double loss, const std::vector<double>& losses) {
    double worse = 0;
    for (const double other : losses) worse += other > loss ? 1 : other == loss ? 0.5 : 0;
    return 2 * worse / static_cast<double>(losses.size()) - 1;
  }

  /// Those that have ended, each with its advantage over those before.
  static std::vector<Seen> trials_of(const SearchState& state) {
    std::vector<Seen> trials;
    std::vector<double> losses;
    for (const Trial& trial : state.history) {
      if (trial.state == Trial::State::running) continue;
      Seen seen{.sample = {.decisions = {}, .counts = {}}, .features = features_of(state.space, trial.point)};
      seen.loss = trial.is_finished() ? trial.losses.front() : std::numeric_limits<double>::infinity();
      losses.push_back(seen.loss);
      seen.sample.advantage = advantage(seen.loss, losses);
      for (size_t index = 0; index < state.space.size(); ++index) {
        const auto& at = trial.point[index];
        seen.sample.counts.push_back(at.has_value());
        seen.sample.decisions.push_back(at ? decision_of(state.space, index, *at) : 0);
      }
      trials.push_back(std::move(seen));
    }
    return trials;
  }

  /// A network that has learned from all whole batches of the trials, and after each trial from what it imagines. What
  /// it has learned from stays, where these trials begin with it: a network that learns from them anew becomes the
  /// same. A trial that ends later than others comes between them: then it goes back to what it had learned from those
  /// ahead of the first one that still ran.
  PolicyNetwork& learned(const Space& space, int64_t seed, const std::vector<Seen>& trials, size_t settled) const {
    const std::vector<int64_t> choices = choices_of(space);
    const auto begins = [&](const std::vector<Seen>& known) {
      return known.size() <= trials.size() && std::equal(known.begin(), known.end(), trials.begin());
    };
    if (policy_ == nullptr || choices != choices_ || seed != seed_ || !begins(settled_)) {
      policy_ = std::make_unique<PolicyNetwork>(library_, choices, static_cast<uint64_t>(seed));
      choices_ = choices;
      seed_ = seed;
      kernel_ = {};
      learned_.clear();
      settle();
    } else if (!begins(learned_)) {
      policy_->go_back_to(memory_);
      kernel_ = settled_kernel_;
      learned_ = settled_;
    }
    while (learned_.size() < trials.size()) {
      learn_from(space, seed, trials[learned_.size()]);
      if (learned_.size() == settled) settle();
    }
    return *policy_;
  }

  void settle() const {
    memory_ = policy_->memory();
    settled_kernel_ = kernel_;
    settled_ = learned_;
  }

  void learn_from(const Space& space, int64_t seed, const Seen& trial) const {
    learned_.push_back(trial);
    if (learned_.size() % PolicyNetwork::kBatch == 0) {
      std::vector<Sample> batch;
      for (size_t index = learned_.size() - PolicyNetwork::kBatch; index < learned_.size(); ++index)
        batch.push_back(learned_[index].sample);
      policy_->learn(batch, kEntropy);
    }
    if (is_modelled()) imagine(space, seed);
  }

  /// Not of too few trials, nor of so many that the policy needs no model.
  bool is_modelled() const { return learned_.size() >= kLeastModelled && learned_.size() <= kMostModelled; }

  /// Of what the policy has learned from, with the kernel that was fitted last.
  std::optional<GaussianProcess> process_of(const Space& space, const Observed& observed) const {
    if (observed.points.size() < 2) return std::nullopt;
    return GaussianProcess(observed.points, standardised(observed.losses), tune::choices_of(space), kernel_);
  }

  /// What a point would lose if it were kOptimism deviations better than expected.
  static double hoped_loss(const GaussianProcess& process, const Space& space, const Point& point) {
    const Prediction judged = process.predict(features_of(space, point));
    return judged.mean - kOptimism * std::sqrt(judged.variance);
  }

  /// What the policy has learned from, without what failed.
  Observed finished() const {
    Observed observed;
    for (const Seen& one : learned_) {
      if (!std::isfinite(one.loss)) continue;
      observed.points.push_back(one.features);
      observed.losses.push_back(one.loss);
    }
    return observed;
  }

  /// Lets the policy learn from points of its own, as a process of what it has seen judges them.
  void imagine(const Space& space, int64_t seed) const {
    const Observed observed = finished();
    if (observed.points.size() >= 2 &&
        (kernel_.inverse_squares.empty() || learned_.size() % PolicyNetwork::kBatch == 0))
      kernel_ = fitted(observed, tune::choices_of(space));
    const std::optional<GaussianProcess> process = process_of(space, observed);
    if (!process) return;
    Random random(static_cast<int64_t>(mix(static_cast<uint64_t>(seed), learned_.size()) >> 1), 0);
    for (int batch = 0; batch < kImagined; ++batch) {
      std::vector<Sample> samples;
      std::vector<double> losses;
      for (int64_t index = 0; index < PolicyNetwork::kBatch; ++index) {
        Drawn drawn = draw(*policy_, space, random);
        losses.push_back(hoped_loss(*process, space, drawn.point));
        samples.push_back(std::move(drawn.sample));
      }
      for (size_t index = 0; index < samples.size(); ++index)
        samples[index].advantage = advantage(losses[index], losses);
      policy_->learn(samples, kImaginedEntropy);
    }
  }

  const Library& library_;
  mutable std::unique_ptr<PolicyNetwork> policy_;  // of these choices and this seed
  mutable std::vector<int64_t> choices_;
  mutable int64_t seed_ = 0;
  mutable std::vector<Seen> learned_, settled_;       // by the policy, and by its memory
  mutable KernelParameters kernel_, settled_kernel_;  // likewise, of the process
  mutable PolicyNetwork::Memory memory_;
};

}  // namespace

std::unique_ptr<Searcher> make_ppo_searcher(const SearcherOptions& options) {
  if (options.library == nullptr)
    fail(ErrorKind::usage, "the searcher 'ppo' trains a network: give it a library, such as standard_library()");
  return std::make_unique<PpoSearcher>(*options.library);
}

}  // namespace weft::tune
