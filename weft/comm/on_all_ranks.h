// What the ranks of a run do alike: work that may fail on some of them, so that all go on or all end with the message
// of the one that failed, and what one of them decides for all. A null communicator is a process that is alone, for
// which all of this costs nothing.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <string_view>

#include "weft/base/exception.h"
#include "weft/comm/communicator.h"

namespace weft::comm {

inline int rank_of(const comm::Communicator* ranks) { return ranks == nullptr ? 0 : ranks->rank(); }
inline int number_of(const comm::Communicator* ranks) { return ranks == nullptr ? 1 : ranks->size(); }
/// The one that writes the run directory and speaks to the user.
inline bool is_first(const comm::Communicator* ranks) { return rank_of(ranks) == 0; }
/// Those on the same host as this one, which is among them.
int ranks_of_host(const comm::Communicator* ranks);

/// An error that every rank of a group throws alike: one of them reports it.
class SharedError : public Error {
 public:
  using Error::Error;
};

/// Runs `work` on every rank; where it throws on any, all throw SharedError with the message of the first that failed,
/// which that rank's name begins unless all failed alike. No exchange may be part of it. `what` names it in errors of
/// the wait for the others. Alone, the error is what the work throws.
void on_all_ranks(comm::Communicator* ranks, std::string_view what, const std::function<void()>& work);

/// The text that the first rank makes, on all ranks; where it throws there, all throw SharedError.
std::string decided_by_first(comm::Communicator* ranks, std::string_view what,
                             const std::function<std::string()>& decide);

}  // namespace weft::comm
