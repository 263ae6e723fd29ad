// text:FILE: a text, character by character, of which a language model learns to predict the next one. Options:
//   length=128           characters in a sample; of text for a trained model, as it was trained
//   split=0.1            the last part of the file, for testing; 0: none
// The vocabulary holds the characters (Unicode code points) of the whole file, sorted. A pass over the training text
// draws as many windows as lie in it side by side, at random offsets that depend on the loader's seed, the epoch and
// the sample alone. The test text is read window after window.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/data/dataset/data_spec.h"
#include "weft/data/dataset/dataset.h"

namespace weft::data {

/// Samples and targets are i32 (T), targets one character ahead. `encoding` as in open_dataset().
std::unique_ptr<Dataset> open_text(const DataSpec& spec, Split split, const std::string& encoding);
bool text_has_test_split(const DataSpec& spec);

/// The windows of a row of tokens; `at_random`: drawn anew in each pass, else side by side. Error(data) where there is
/// not even one.
std::unique_ptr<Dataset> make_text_windows(DatasetInfo info, std::vector<uint16_t> tokens, bool at_random);

/// Between characters and tokens.
class Vocabulary {
 public:
  /// Error(data) for what is no UTF-8, naming the byte. `name` stands in messages.
  static Vocabulary learn(std::string_view text, const std::string& name);
  static Vocabulary from_json(const std::string& text);
  std::string to_json() const;

  int64_t size() const { return static_cast<int64_t>(characters_.size()); }
  /// In UTF-8.
  const std::vector<std::string>& characters() const { return characters_; }
  /// Error(data), naming line and column, for a character that is not known.
  std::vector<uint16_t> encode(std::string_view text, const std::string& name) const;

 private:
  void index();
  std::vector<std::string> characters_;
  std::vector<std::pair<uint32_t, uint16_t>> tokens_;  // code point -> token, sorted
};

}  // namespace weft::data
