// Loops that pick the elements of one run from places given by a table; compiled per instruction set (multiversion.h).

template <typename Word>
void pick(const void* from_data, const int32_t* places, void* to_data, int64_t count) {
  const Word* const from = static_cast<const Word*>(from_data);
  Word* const to = static_cast<Word*>(to_data);
  for (int64_t i = 0; i < count; ++i) to[i] = from[places[i]];
}

constexpr Loops loops{pick<uint8_t>, pick<uint16_t>, pick<uint32_t>};
