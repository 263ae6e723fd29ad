#include "weft/graph/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "weft/base/error.h"

namespace weft {

namespace {

constexpr size_t kMostTerms = 1000;  // of a product: a text must not grow without bound when it is read

[[noreturn]] void overflow() { fail(ErrorKind::shape, "a dimension is more than 64 bits hold"); }

int64_t sum(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) overflow();
  return result;
}
int64_t product(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) overflow();
  return result;
}

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool continues_name(char c) { return begins_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// sum = product {("+" | "-") product}, product = factor {"*" factor}, factor = number | name | "(" sum ")" | "-"
/// factor
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Expression parse() {
    Expression whole = parse_sum();
    if (at_ != text_.size()) bad();
    return whole;
  }

 private:
  static constexpr int kDeepest = 100;

  [[noreturn]] void bad() const {
    fail(ErrorKind::data, "'{}' is no dimension; write a number, a name such as N, or sums and products such as 2*T+1",
         text_);
  }
  bool accept(char c) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return true;
  }
  Expression parse_sum() {
    Expression result = parse_product();
    for (;;) {
      if (accept('+'))
        result = result + parse_product();
      else if (accept('-'))
        result = result - parse_product();
      else
        return result;
    }
  }
  Expression parse_product() {
    Expression result = parse_factor();
    while (accept('*')) result = result * parse_factor();
    return result;
  }
  Expression parse_factor() {
    if (++depth_ > kDeepest) bad();
    Expression result;
    if (accept('-')) {
      result = Expression(0) - parse_factor();
    } else if (accept('(')) {
      result = parse_sum();
      if (!accept(')')) bad();
    } else {
      accept(' ');
      result = parse_atom();
    }
    --depth_;
    return result;
  }
  Expression parse_atom() {
    if (at_ >= text_.size()) bad();
    const size_t begin = at_;
    if (begins_name(text_[at_])) {
      while (at_ < text_.size() && continues_name(text_[at_])) ++at_;
      return Expression::symbol(std::string(text_.substr(begin, at_ - begin)));
    }
    int64_t value = 0;
    const auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (code != std::errc()) bad();
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Expression::Expression(int64_t value) { add({}, value); }

Expression Expression::symbol(const std::string& name) {
  if (name.empty() || !begins_name(name.front()) || !std::all_of(name.begin(), name.end(), continues_name))
    fail(ErrorKind::usage, "'{}' is no name of a symbol; write letters, digits and '_', a letter first", name);
  Expression result;
  result.add({name}, 1);
  return result;
}

Expression Expression::parse(std::string_view text) { return Parser(text).parse(); }

void Expression::add(const Product& names, int64_t factor) {
  if (factor == 0) return;
  const auto [place, is_new] = terms_.emplace(names, factor);
  if (is_new) return;
  place->second = sum(place->second, factor);
  if (place->second == 0) terms_.erase(place);
}

std::optional<int64_t> Expression::constant() const {
  if (terms_.empty()) return 0;
  if (terms_.size() == 1 && terms_.begin()->first.empty()) return terms_.begin()->second;
  return std::nullopt;
}

std::set<std::string> Expression::symbols() const {
  std::set<std::string> names;
  for (const auto& [product, factor] : terms_) names.insert(product.begin(), product.end());
  return names;
}

int64_t Expression::evaluate(const SymbolBindings& bindings) const {
  int64_t result = 0;
  for (const auto& [names, factor] : terms_) {
    int64_t term = factor;
    for (const std::string& name : names) {
      const auto found = bindings.find(name);
      if (found == bindings.end())
        fail(ErrorKind::usage, "the symbol '{}' in {} has no value; bind it, as in {}=32", name, to_string(*this),
             name);
      term = product(term, found->second);
    }
    result = sum(result, term);
  }
  return result;
}

std::optional<Expression> Expression::divided_by(const Expression& divisor) const {
  if (divisor.terms_.size() != 1) return std::nullopt;
  const auto& [names, factor] = *divisor.terms_.begin();
  Expression quotient;
  for (const auto& [own_names, own_factor] : terms_) {
    if (own_factor % factor != 0 || !std::includes(own_names.begin(), own_names.end(), names.begin(), names.end()))
      return std::nullopt;
    Product rest;
    std::set_difference(own_names.begin(), own_names.end(), names.begin(), names.end(), std::back_inserter(rest));
    quotient.add(rest, factor == -1 ? weft::product(own_factor, -1) : own_factor / factor);
  }
  return quotient;
}

Expression operator+(const Expression& a, const Expression& b) {
  Expression result = a;
  for (const auto& [names, factor] : b.terms_) result.add(names, factor);
  return result;
}

Expression operator-(const Expression& a, const Expression& b) { return a + b * Expression(-1); }

Expression operator*(const Expression& a, const Expression& b) {
  if (a.terms_.size() * b.terms_.size() > kMostTerms)
    fail(ErrorKind::shape, "the product of a dimension of {} terms and one of {} is too long", a.terms_.size(),
         b.terms_.size());
  Expression result;
  for (const auto& [a_names, a_factor] : a.terms_)
    for (const auto& [b_names, b_factor] : b.terms_) {
      Expression::Product names;
      std::merge(a_names.begin(), a_names.end(), b_names.begin(), b_names.end(), std::back_inserter(names));
      result.add(names, product(a_factor, b_factor));
    }
  return result;
}

std::string to_string(const Expression& expression) {
  if (expression.terms_.empty()) return "0";
  // Long products first, the number last.
  std::vector<std::pair<Expression::Product, int64_t>> terms(expression.terms_.begin(), expression.terms_.end());
  std::stable_sort(terms.begin(), terms.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  std::string text;
  for (const auto& [names, factor] : terms) {
    const bool shows_factor = names.empty() || (factor != 1 && factor != -1);
    if (factor > 0 && !text.empty()) text += "+";
    if (shows_factor)
      text += fmt::format("{}", factor);
    else if (factor < 0)
      text += "-";
    for (size_t index = 0; index < names.size(); ++index) text += (index > 0 || shows_factor ? "*" : "") + names[index];
  }
  return text;
}

std::string to_string(const std::vector<Expression>& dims) {
  std::string text;
  for (size_t index = 0; index < dims.size(); ++index) text += (index == 0 ? "" : ",") + to_string(dims[index]);
  return text;
}

std::vector<Expression> parse_expressions(std::string_view text) {
  std::vector<Expression> all;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    all.push_back(Expression::parse(text.substr(0, comma)));
    if (comma + 1 == text.size()) fail(ErrorKind::data, "'{}' ends in a comma; a dimension is missing", text);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return all;
}

void add_binding(SymbolBindings& bindings, std::string_view text) {
  const size_t equals = text.find('=');
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto result = equals == text.npos ? std::from_chars_result{end, std::errc::invalid_argument}
                                          : std::from_chars(text.data() + equals + 1, end, value);
  if (result.ec != std::errc() || result.ptr != end)
    fail(ErrorKind::usage, "'{}' binds no symbol; write NAME=NUMBER, as in N=32", text);
  const std::string name(text.substr(0, equals));
  Expression::symbol(name);  // must be one
  const auto [place, is_new] = bindings.emplace(name, value);
  if (!is_new && place->second != value)
    fail(ErrorKind::usage, "the symbol '{}' is {} and {} at once; bind it once", name, place->second, value);
}

SymbolBindings parse_bindings(const std::vector<std::string>& texts) {
  SymbolBindings bindings;
  for (const std::string& text : texts) add_binding(bindings, text);
  return bindings;
}

}  // namespace weft
