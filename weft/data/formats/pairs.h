// pairs:FILE: SOURCE<TAB>TARGET on each line, of which a model learns to turn the first into the second, character by
// character. Options, after a '?' and divided by '&':
//   test=FILE            the test pairs; default: a part of FILE
//   split=0.1, seed=0    how large a part, and which
//   source=N, target=N   longest source and target, in characters; default: as long as they come in FILE and in the
//   test
//                        file. Longer pairs are left out with a note that counts them
// The vocabulary holds the characters of sources and targets, behind the padding (token 0), the start (1) and the end
// (2). A sample is the source, filled up to S tokens, then the start and the target, filled up to T = longest target +
// 1; its targets are the T tokens from the target's first to the end, then -100.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/data/dataset/data_spec.h"
#include "weft/data/dataset/dataset.h"
#include "weft/data/texts/token_table.h"

namespace weft::data {

/// Samples are i32 (S+T), targets i32 (T). `encoding` as in open_dataset().
std::unique_ptr<Dataset> open_pairs(const DataSpec& spec, Split split, const std::string& encoding);
bool pairs_have_test_split(const DataSpec& spec);

/// What a trained model knows of pairs: how sources become tokens, and tokens text.
struct PairEncoding {
  static constexpr int32_t kPadding = 0, kStart = 1, kEnd = 2;
  TokenTable table;
  int64_t source, target;  // longest ones

  static PairEncoding from_json(const std::string& text);
  std::string to_json() const;
  int64_t target_steps() const { return target + 1; }  // and the end
};

}  // namespace weft::data
