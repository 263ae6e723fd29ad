// The State of a run on several ranks: all take over the first rank's state, or their parts of it; a fingerprint
// compares them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/device/state.h"
#include "weft/step/step.h"

namespace weft::program {

/// Gives every rank the first rank's tensors, in plain layouts, and no others: the first rank has them whole, and of
/// those in `shardings`, of ranks in that mesh, each keeps its part. Null `ranks`: nothing happens.
void take_first_state(comm::Communicator* ranks, State& state, const step::Shardings& shardings = {},
                      const Mesh& mesh = Mesh({}));

/// A tensor that the first rank reads, as it is to be on each.
struct SourceTensor {
  std::string name;
  TensorType type;  // plain, whole
};
/// The same of tensors that the first rank reads one after the other, so that no rank holds more than one of them
/// whole. `tensors` and `read` are those of the first rank.
State take_first_tensors(comm::Communicator& ranks, const std::vector<SourceTensor>& tensors,
                         const std::function<Tensor(const std::string& name)>& read, const step::Shardings& shardings,
                         const Mesh& mesh);

/// The weights and statistics of a state, without slots, put together from the parts that ranks have of them. All ranks
/// call it.
State whole_weights(comm::Communicator& ranks, const State& state, const step::Shardings& shardings, const Mesh& mesh);

/// Of names, shapes and numbers, whatever the layouts; hexadecimal. Of what ranks share the numbers count for nothing.
std::string fingerprint_of(const State& state, const step::Shardings& shardings = {});

}  // namespace weft::program
