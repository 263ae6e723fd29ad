// Whose message is whose: each user of a communicator has tags of its own.
#pragma once

namespace weft::comm {

inline constexpr int kExchangeTag = 1;
inline constexpr int kSharedMemoryTag = 2;
inline constexpr int kSignOfLifeTag = 3;
/// From here on each message of each collective has its own, so that they may overtake each other.
inline constexpr int kFirstCollectiveTag = 64;
inline constexpr int kTags = 1 << 23;  // what all implementations of MPI in use offer

/// Messages from rank to rank, whose tags are given from outside, have the last ones.
inline constexpr int kMessageTags = 1 << 20;
inline constexpr int kFirstMessageTag = kTags - kMessageTags;

/// Groups of ranks (group.h) have tags of their own below those, as many each: at the end of them those of messages.
inline constexpr int kMostGroups = 8;
inline constexpr int kGroupTags = 1 << 18, kGroupMessageTags = 1 << 14;
inline constexpr int kFirstGroupTag = kFirstMessageTag - kMostGroups * kGroupTags;

}  // namespace weft::comm
