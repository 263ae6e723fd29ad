// The default for one objective: a Gaussian process while trials are few, then a tree of Parzen estimators. The process
// finds more with the same trials (benchmarks/tuning_regret.py), but the time that it takes for each grows with their
// number.
#include "weft/tune/searchers/entries.h"

namespace weft::tune {

namespace {

constexpr size_t kTrialsOfProcess = 200;

class AutomaticSearcher : public Searcher {
 public:
  explicit AutomaticSearcher(const SearcherOptions& options)
      : process_(make_bayesian_searcher(options)), parzen_(make_tpe_searcher(options)) {}

  void check(const Space& space) const override {
    process_->check(space);
    parzen_->check(space);
  }

  std::optional<Proposal> ask(const SearchState& state) const override {
    return (state.history.size() < kTrialsOfProcess ? process_ : parzen_)->ask(state);
  }

 private:
  std::unique_ptr<Searcher> process_, parzen_;
};

}  // namespace

std::unique_ptr<Searcher> make_automatic_searcher(const SearcherOptions& options) {
  return std::make_unique<AutomaticSearcher>(options);
}

}  // namespace weft::tune
