// A whole number that is not known yet: a sum of products of named symbols, as a dimension of a graph whose batch or
// sequence length is chosen later. "2*T+1", "H*N*W", "128".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// What each symbol stands for.
using SymbolBindings = std::map<std::string, int64_t>;

/// In one form for all that are equal as polynomials, so that == is equality. Operators throw Error(shape) where a
/// factor overflows.
class Expression {
 public:
  Expression(int64_t value = 0);
  /// Error(usage) where it is no name: a letter or '_', then letters, digits and '_'.
  static Expression symbol(const std::string& name);
  /// Reverses to_string; also takes brackets and minus signs. Error(data) with the text.
  static Expression parse(std::string_view text);

  /// The number where there is no symbol in it.
  std::optional<int64_t> constant() const;
  std::set<std::string> symbols() const;
  /// Error(usage) that names a symbol without a value; Error(shape) where the number overflows.
  int64_t evaluate(const SymbolBindings& bindings) const;
  /// The quotient, where the divisor is one product that divides every term.
  std::optional<Expression> divided_by(const Expression& divisor) const;

  friend Expression operator+(const Expression& a, const Expression& b);
  friend Expression operator-(const Expression& a, const Expression& b);
  friend Expression operator*(const Expression& a, const Expression& b);
  friend bool operator==(const Expression&, const Expression&) = default;
  friend std::string to_string(const Expression& expression);

 private:
  using Product = std::vector<std::string>;  // names in alphabetical order, one as often as it is a factor
  void add(const Product& product, int64_t factor);

  std::map<Product, int64_t> terms_;  // no factor is 0
};

/// "[N,3,2*T+1]" without the brackets.
std::string to_string(const std::vector<Expression>& dims);
/// Reverses it.
std::vector<Expression> parse_expressions(std::string_view text);

/// Adds "N=32"; Error(usage) where it is no such text, or the symbol has another value already.
void add_binding(SymbolBindings& bindings, std::string_view text);
/// All of a list.
SymbolBindings parse_bindings(const std::vector<std::string>& texts);

}  // namespace weft
