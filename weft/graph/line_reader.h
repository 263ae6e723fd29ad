// Reads a graph's text line by line, for the ordinary graph and the one with symbols.
#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <variant>

#include "weft/base/error.h"
#include "weft/graph/attributes.h"
#include "weft/graph/constant_text.h"

namespace weft {

/// Reads one line; every method says what it expected and on which line it stood.
class LineReader {
 public:
  LineReader(std::string_view line, int number) : line_(line), number_(number) {}

  [[noreturn]] void bad(const std::string& expected) const {
    fail(ErrorKind::data, "graph text, line {}: expected {} at '{}'", number_, expected, line_.substr(at_));
  }
  void skip_spaces() {
    while (at_ < line_.size() && std::isspace(static_cast<unsigned char>(line_[at_]))) ++at_;
  }
  bool at_end() {
    skip_spaces();
    return at_ >= line_.size() || line_[at_] == '#';
  }
  void require_end() {
    if (!at_end()) bad("the end of the line");
  }
  bool accept(char c) {
    skip_spaces();
    if (at_ >= line_.size() || line_[at_] != c) return false;
    ++at_;
    return true;
  }
  void require(char c) {
    if (!accept(c)) bad(fmt::format("'{}'", c));
  }
  bool next_is(char c) {
    skip_spaces();
    return at_ < line_.size() && line_[at_] == c;
  }
  std::string word() {
    skip_spaces();
    const size_t begin = at_;
    while (at_ < line_.size() && (std::isalnum(static_cast<unsigned char>(line_[at_])) ||
                                  std::string_view("_./-").find(line_[at_]) != std::string_view::npos))
      ++at_;
    if (begin == at_) bad("a name");
    return std::string(line_.substr(begin, at_ - begin));
  }
  std::string value_name() {
    require('%');
    return word();
  }
  std::string quoted_text() {
    skip_spaces();
    const std::string_view token = quoted_token();
    return std::get<std::string>(parse_attribute_value(token));
  }
  /// "f32[...]" as it stands.
  std::string_view bracketed_type() {
    skip_spaces();
    const size_t begin = at_;
    const size_t close = line_.find(']', at_);
    if (close == line_.npos) bad("a type like f32[2,3]");
    at_ = close + 1;
    return line_.substr(begin, at_ - begin);
  }
  TensorType tensor_type() {
    skip_spaces();
    const size_t begin = at_;
    bracketed_type();
    if (at_ < line_.size() && line_[at_] == '@')
      while (at_ < line_.size() && (std::isalnum(static_cast<unsigned char>(line_[at_])) || line_[at_] == '@')) ++at_;
    return parse_tensor_type(line_.substr(begin, at_ - begin));
  }
  AttributeValue attribute_value(const ConstantTable& constants) {
    const std::string_view token = attribute_token();
    return token.front() == '<' ? parse_constant(token, constants) : parse_attribute_value(token);
  }
  /// The text of an attribute's value.
  std::string_view attribute_token() {
    skip_spaces();
    if (next_is('"')) return quoted_token();
    const size_t begin = at_;
    if (next_is('<')) {
      const size_t close = line_.find('>', at_);
      if (close == line_.npos) bad("'>'");
      at_ = close + 1;
      return line_.substr(begin, at_ - begin);
    }
    if (next_is('[')) {
      const size_t close = line_.find(']', at_);
      if (close == line_.npos) bad("']'");
      at_ = close + 1;
    } else {
      while (at_ < line_.size() && line_[at_] != ',' && line_[at_] != '}') ++at_;
    }
    if (at_ == begin) bad("the value of an attribute");
    return line_.substr(begin, at_ - begin);
  }

 private:
  std::string_view quoted_token() {
    const size_t begin = at_;
    if (at_ >= line_.size() || line_[at_] != '"') bad("a text in quotes");
    for (++at_; at_ < line_.size() && line_[at_] != '"'; ++at_)
      if (line_[at_] == '\\') ++at_;
    if (at_ >= line_.size()) bad("a closing quote");
    ++at_;
    return line_.substr(begin, at_ - begin);
  }

  std::string_view line_;
  int number_;
  size_t at_ = 0;
};

}  // namespace weft
