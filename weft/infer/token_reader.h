// Reads tokens one after the other and foretells the next. It keeps the keys and values of those that it has read
// (models::ModelInput::new_tokens), so that each new token costs one pass of one token through the network.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/compile/compile.h"
#include "weft/library/library.h"
#include "weft/program/driver.h"
#include "weft/run/loaded_run.h"

namespace weft::infer {

class TokenReader {
 public:
  /// Keeps references to all but the options. The caches of keys and values join the state of the run.
  TokenReader(const Library& library, const Device& device, run::LoadedRun& run, const CompileOptions& options);
  TokenReader(const TokenReader&) = delete;
  TokenReader& operator=(const TokenReader&) = delete;

  /// Whether the model of the run can be read so.
  static bool serves(const Library& library, const run::LoadedRun& run);

  /// Reads one or more tokens behind those before. Gives the probabilities of the token that follows, until the next
  /// call. A model sees a window of so many tokens: where it is full, the reader forgets the older half of them, and
  /// reads the other half anew.
  std::span<const float> read(std::span<const int32_t> tokens);
  /// Forgets all tokens.
  void forget() { tokens_.clear(); }
  int64_t window() const { return window_; }

 private:
  /// The tokens of the window from this place on.
  void read_from(int64_t position);
  /// `count` of them, whose plan reads as many at once. Sets `following_`.
  void run_tokens(int64_t first, int64_t count);

  const int64_t window_;
  State& state_;
  program::Program program_;  // whose shapes are numbers of tokens, of one text
  program::Driver driver_;
  std::vector<int32_t> tokens_;   // those in the window
  std::vector<float> following_;  // probabilities of the next one
  data::Batch batch_;
};

}  // namespace weft::infer
