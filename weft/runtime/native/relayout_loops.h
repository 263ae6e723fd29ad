// Loops that pick the elements of one run from places given by a table; compiled per instruction set (multiversion.h).

template <typename Word>
void pick(const void* from_data, const int32_t* places, void* to_data, int64_t count) {
  const Word* const from = static_cast<const Word*>(from_data);
  Word* const to = static_cast<Word*>(to_data);
  for (int64_t i = 0; i < count; ++i) to[i] = from[places[i]];
}

/// With a change of type: all are picked first, as conversions want whole vectors.
template <typename From, typename To>
void pick_and_cast(const void* from_data, const int32_t* places, void* to_data, int64_t count) {
  From picked[kLongestRun];
  pick<From>(from_data, places, picked, count);
  To* const to = static_cast<To*>(to_data);
  for_each_lane_group(count, [&](auto lane, int64_t at) {
    using V = decltype(lane);
    store<V>(to + at, load<V>(picked + at));
  });
}

constexpr Loops loops{pick<uint16_t>, pick<uint32_t>, pick_and_cast<float, Bf16>, pick_and_cast<Bf16, float>};
