// labelled:FILE: LABEL<TAB>TEXT on each line: texts in classes. Options, after a '?' and divided by '&':
//   label=1              which of the two is the label: 1, or 2 for TEXT<TAB>LABEL
//   skip=0               lines before the first text, such as a header
//   test=FILE            the test texts; default: a part of FILE, the same share of every class
//   split=0.2, seed=0    how large a part, and which
//   unit=character|word  what a token stands for
//   length=N             tokens of a sample; default: of the longest training text, but at most 256. Of longer ones the
//                        beginning counts
//   vocabulary=20000     most units in the vocabulary
// The vocabulary holds what training texts have at least twice, behind the padding (token 0) and all other units (1).
// Padding stands before a text, so that a recurrent network ends with the text's end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/data/dataset/data_spec.h"
#include "weft/data/dataset/dataset.h"
#include "weft/data/texts/token_table.h"

namespace weft::data {

/// Samples are i32 (T), targets classes. `encoding` as in open_dataset().
std::unique_ptr<Dataset> open_labelled(const DataSpec& spec, Split split, const std::string& encoding);
bool labelled_has_test_split(const DataSpec& spec);

/// What a trained model knows of such texts.
struct LabelledEncoding {
  static constexpr int32_t kPadding = 0, kOther = 1;
  TokenTable table;
  int64_t length, label;  // which field the label is: 1 or 2
  std::vector<std::string> classes;

  static LabelledEncoding from_json(const std::string& text);
  std::string to_json() const;
  /// The text as one sample, `length` tokens; gives back how many it has itself.
  int64_t encode(std::string_view text, const std::string& where, int32_t* sample) const;
};

}  // namespace weft::data
