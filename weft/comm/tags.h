// Whose message is whose: each user of a communicator has tags of its own.
#pragma once

namespace weft::comm {

inline constexpr int kExchangeTag = 1;
inline constexpr int kSharedMemoryTag = 2;
inline constexpr int kSignOfLifeTag = 3;
/// From here on each message of each collective has its own, so that they may overtake each other.
inline constexpr int kFirstCollectiveTag = 64;
inline constexpr int kTags = 1 << 23;  // what all implementations of MPI in use offer

}  // namespace weft::comm
