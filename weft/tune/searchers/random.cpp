// Random search: Bergstra and Bengio, "Random search for hyper-parameter optimization", JMLR 13 (2012).
#include "weft/tune/space/random.h"

#include "weft/tune/searchers/entries.h"

namespace weft::tune {

namespace {

class RandomSearcher : public Searcher {
 public:
  std::optional<Proposal> ask(const SearchState& state) const override {
    Random random(state.seed, static_cast<int64_t>(state.history.size()));
    std::vector<double> units(state.space.size());
    for (double& unit : units) unit = random.uniform();
    return Proposal{state.space.from_unit(units)};
  }
};

}  // namespace

std::unique_ptr<Searcher> make_random_searcher(const SearcherOptions&) { return std::make_unique<RandomSearcher>(); }

}  // namespace weft::tune
