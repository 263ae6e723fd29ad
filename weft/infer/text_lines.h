// Files with a text on each line, for `weft predict`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::infer {

struct TextLine {
  int64_t number;           // from 1 on
  std::string text, where;  // "'FILE':12", for messages
};

/// A whole text file; "-" is standard input. Error(io) where there is none, for users who give the text itself.
std::string read_text_input(const std::string& file);

/// Lines that hold text, without blanks around it; of lines with a tab, as training data have it, the field of this
/// number (0 or 1). What is no UTF-8 is said and left out, and `damaged` set. Error(data) where no line is there.
std::vector<TextLine> read_text_lines(const std::string& file, size_t field, bool& damaged);

}  // namespace weft::infer
