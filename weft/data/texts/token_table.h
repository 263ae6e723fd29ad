// Characters or words of texts, and the tokens that stand for them. The first tokens have meanings of their own:
// padding, the start and the end of a sequence, the blank between letters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace weft::data {

enum class TextUnit {
  character,  // Unicode code points
  word,       // runs of anything but white space and ASCII punctuation, of which each stands alone; ' and - join
};
/// "character", "word"
std::string_view name_of(TextUnit unit);
/// Of valid UTF-8.
int64_t count_units(std::string_view text, TextUnit unit);

/// "3 to 20 characters, 99 % up to 18, mean 12.4" of the lengths of texts.
std::string describe_lengths(std::vector<int64_t> lengths, TextUnit unit);

class TokenTable {
 public:
  /// How often a unit must occur to be in the table, and how many units there may be: the most frequent ones stay.
  struct Limits {
    int64_t at_least = 1, most = 60000;
  };
  /// The units of all texts, sorted, behind the `special` names. Error(data), naming the byte of `name`, for what is no
  /// UTF-8.
  static TokenTable learn(const std::vector<std::string_view>& texts, TextUnit unit,
                          const std::vector<std::string>& special, const Limits& limits, const std::string& name);
  /// From what names() and unit() were. Error(data) beginning with `name` where a unit is there twice, or none at all.
  TokenTable(std::vector<std::string> names, size_t special, TextUnit unit, const std::string& name);

  int64_t size() const { return static_cast<int64_t>(names_.size()); }
  /// One per token, the special ones first.
  const std::vector<std::string>& names() const { return names_; }
  TextUnit unit() const { return unit_; }
  /// "11 characters: -0123456789", or without them where there are many.
  std::string describe() const;

  /// Units that are not in the table become `unknown`; where it is negative: Error(data), "WHERE: the character ...".
  std::vector<uint16_t> encode(std::string_view text, const std::string& where, int32_t unknown = -1) const;
  /// Special tokens leave no trace, words are joined by spaces.
  std::string decode(const std::vector<int32_t>& tokens) const;

 private:
  std::vector<std::string> names_;
  size_t special_;
  TextUnit unit_;
  std::unordered_map<std::string, uint16_t> tokens_;
};

}  // namespace weft::data
