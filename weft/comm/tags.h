// Whose message is whose: each user of a communicator has tags of its own.
#pragma once

namespace weft::comm {

inline constexpr int kExchangeTag = 1;
inline constexpr int kSharedMemoryTag = 2;
inline constexpr int kSignOfLifeTag = 3;
/// Of the collective with index i: kFirstCollectiveTag + i % kCollectiveTags, times the parts that are under way.
inline constexpr int kFirstCollectiveTag = 64;
inline constexpr int kCollectiveTags = 32768 - kFirstCollectiveTag;

}  // namespace weft::comm
