// Matrix products.
#include <algorithm>
#include <map>
#include <set>

#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {

namespace {

/// Before a transpose that swaps the last two axes; the value itself elsewhere.
std::pair<ValueId, bool> before_transpose(const Graph& graph, ValueId x) {
  const Node* node = graph.producer(x);
  const int rank = graph.shape(x).rank();
  if (node == nullptr || node->op->name != "transpose" || rank < 2) return {x, false};
  std::vector<int64_t> swaps = all_axes(rank);
  std::swap(swaps[static_cast<size_t>(rank) - 1], swaps[static_cast<size_t>(rank) - 2]);
  if (node->attributes.integers("permutation") != swaps) return {x, false};
  return {node->inputs[0], true};
}

/// Vectors become matrices of one row or column, which the result loses again, as numpy.matmul.
ValueId multiply(NodeContext& node, ValueId a, ValueId b) {
  Graph& graph = node.graph();
  const bool is_row = graph.shape(a).rank() == 1, is_column = graph.shape(b).rank() == 1;
  if (graph.shape(a).rank() == 0 || graph.shape(b).rank() == 0) node.fail("cannot multiply scalars");
  if (is_row) a = unsqueeze(graph, a, {0});
  if (is_column) b = unsqueeze(graph, b, {1});
  const auto [left, swaps_left] = before_transpose(graph, a);
  const auto [right, swaps_right] = before_transpose(graph, b);
  const ValueId product = ops::matmul(graph, left, right, swaps_left, swaps_right, node.hint());
  const int rank = graph.shape(product).rank();
  std::vector<int64_t> gone;
  if (is_row) gone.push_back(rank - 2);
  if (is_column) gone.push_back(rank - 1);
  return gone.empty() ? product : squeeze(graph, product, gone);
}

std::vector<ValueId> convert_matmul(NodeContext& node) { return {multiply(node, node.value(0), node.value(1))}; }

/// alpha A' B' + beta C
std::vector<ValueId> convert_gemm(NodeContext& node) {
  Graph& graph = node.graph();
  ValueId result = ops::matmul(graph, node.value(0), node.value(1), node.integer("transA", 0) != 0,
                               node.integer("transB", 0) != 0, node.hint());
  const double alpha = node.real("alpha", 1), beta = node.real("beta", 1);
  const auto scaled = [&](ValueId x, double factor) {
    return factor == 1 ? x : ops::multiply(graph, x, scalar_like(graph, x, factor));
  };
  result = scaled(result, alpha);
  if (!node.has(2) || beta == 0) return {result};
  ValueId c = scaled(node.value(2), beta);
  // Version 6 and older broadcast where they are told to; all do it as NumPy does from version 7 on.
  return {ops::add(graph, result, c, node.hint())};
}

// --- Einsum
// -----------------------------------------------------------------------------------------------------------

constexpr char kEllipsisBase = 1;  // the axes that "..." stands for have letters of their own: 1, 2, ...

struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

std::string letters_of(const NodeContext& node, const std::string& term, int hidden) {
  std::string letters;
  for (size_t index = 0; index < term.size(); ++index) {
    if (term[index] == ' ') continue;
    if (term.compare(index, 3, "...") == 0) {
      for (int axis = 0; axis < hidden; ++axis) letters += static_cast<char>(kEllipsisBase + axis);
      index += 2;
    } else if (std::isalpha(static_cast<unsigned char>(term[index])) != 0) {
      letters += term[index];
    } else {
      node.fail("has an equation with '" + term + "'");
    }
  }
  return letters;
}

Equation parse_equation(NodeContext& node) {
  std::string text = node.text("equation", "");
  const size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  std::vector<std::string> terms;
  for (size_t start = 0; start <= left.size();) {
    const size_t comma = std::min(left.find(',', start), left.size());
    terms.push_back(left.substr(start, comma - start));
    start = comma + 1;
  }
  if (static_cast<int>(terms.size()) != node.input_count()) node.fail("has an equation for another number of operands");
  Equation equation;
  int most_hidden = 0;
  std::map<char, int> counts;
  for (int input = 0; input < node.input_count(); ++input) {
    const std::string& term = terms[static_cast<size_t>(input)];
    const auto named =
        static_cast<int>(std::count_if(term.begin(), term.end(), [](char c) { return c != ' ' && c != '.'; }));
    const int hidden = term.find("...") == std::string::npos ? 0 : node.rank(input) - named;
    if (hidden < 0) node.fail("has an equation that does not fit its operands");
    most_hidden = std::max(most_hidden, hidden);
    std::string letters = letters_of(node, term, hidden);
    if (static_cast<int>(letters.size()) != node.rank(input))
      node.fail("has an equation that does not fit its operands");
    for (const char letter : letters)
      if (letter > kEllipsisBase + 30) ++counts[letter];
    equation.operands.push_back(letters);
  }
  // Hidden axes count from the right.
  for (std::string& letters : equation.operands) {
    const auto own = static_cast<int>(std::count_if(letters.begin(), letters.end(), [](char c) { return c < 'A'; }));
    for (char& letter : letters)
      if (letter < 'A') letter = static_cast<char>(letter + most_hidden - own);
  }
  if (arrow != std::string::npos) {
    equation.result = letters_of(node, text.substr(arrow + 2), most_hidden);
  } else {
    for (int axis = 0; axis < most_hidden; ++axis) equation.result += static_cast<char>(kEllipsisBase + axis);
    for (const auto& [letter, count] : counts)
      if (count == 1) equation.result += letter;
  }
  return equation;
}

/// An operand with its letters, each once.
struct Term {
  ValueId value;
  std::string letters;
};

/// A letter that stands twice: the diagonal, as a mask and a sum.
Term without_repeats(Graph& graph, Term term) {
  for (size_t first = 0; first < term.letters.size(); ++first) {
    const size_t second = term.letters.find(term.letters[first], first + 1);
    if (second == std::string::npos) continue;
    const int64_t size = graph.shape(term.value)[static_cast<int>(first)];
    std::vector<int64_t> rows(term.letters.size(), 1), columns(term.letters.size(), 1);
    rows[first] = size;
    columns[second] = size;
    const ValueId numbers = ops::iota(graph, DType::i64, size);
    const ValueId same =
        as_boolean(graph, ops::equal(graph, ops::reshape(graph, numbers, rows), ops::reshape(graph, numbers, columns)));
    const ValueId kept = ops::where(graph, same, term.value, scalar_like(graph, term.value, 0));
    term.value = ops::reduce_sum(graph, kept, {static_cast<int64_t>(second)});
    term.letters.erase(second, 1);
    return without_repeats(graph, std::move(term));
  }
  return term;
}

Term summed_over(Graph& graph, Term term, const std::set<char>& kept) {
  std::vector<int64_t> axes;
  std::string letters;
  for (size_t axis = 0; axis < term.letters.size(); ++axis) {
    if (kept.contains(term.letters[axis]))
      letters += term.letters[axis];
    else
      axes.push_back(static_cast<int64_t>(axis));
  }
  if (!axes.empty()) term.value = ops::reduce_sum(graph, term.value, axes);
  return {term.value, letters};
}

/// Axes in this order, with 1 where the term has none.
ValueId arranged(Graph& graph, const Term& term, const std::string& order) {
  std::vector<int64_t> permutation, shape;
  for (const char letter : order) {
    const size_t axis = term.letters.find(letter);
    if (axis != std::string::npos) permutation.push_back(static_cast<int64_t>(axis));
    shape.push_back(axis == std::string::npos ? 1 : graph.shape(term.value)[static_cast<int>(axis)]);
  }
  ValueId value = term.value;
  if (!std::is_sorted(permutation.begin(), permutation.end())) value = ops::transpose(graph, value, permutation);
  return ops::reshape(graph, value, shape);
}

/// Of two terms, with the letters in `kept` left: a batched matrix product.
Term contracted(Graph& graph, const Term& a, const Term& b, const std::set<char>& kept) {
  std::string batch, rows, columns, inner;
  for (const char letter : a.letters) {
    const bool in_b = b.letters.find(letter) != std::string::npos;
    (in_b ? (kept.contains(letter) ? batch : inner) : rows) += letter;
  }
  for (const char letter : b.letters)
    if (a.letters.find(letter) == std::string::npos) columns += letter;
  const auto product_of = [&](const std::string& letters) {
    int64_t product = 1;
    for (const char letter : letters) {
      const size_t in_a = a.letters.find(letter), in_b = b.letters.find(letter);
      const int64_t left = in_a == std::string::npos ? 1 : graph.shape(a.value)[static_cast<int>(in_a)];
      const int64_t right = in_b == std::string::npos ? 1 : graph.shape(b.value)[static_cast<int>(in_b)];
      product *= std::max(left, right);
    }
    return product;
  };
  const auto sizes_of = [&](const Term& term, const std::string& letters, bool of_own) {
    std::vector<int64_t> sizes;
    for (const char letter : letters) {
      const size_t axis = term.letters.find(letter);
      sizes.push_back(of_own && axis != std::string::npos ? graph.shape(term.value)[static_cast<int>(axis)]
                                                          : product_of(std::string(1, letter)));
    }
    return Shape(sizes);
  };
  // Sizes of 1 beside others are broadcast first.
  const auto wide = [&](const Term& term, const std::string& order) {
    const ValueId value = arranged(graph, term, order);
    const Shape want = sizes_of(term, order, false);
    return graph.shape(value) == want ? value : ops::broadcast_to(graph, value, want);
  };
  const ValueId left =
      ops::reshape(graph, wide(a, batch + rows + inner), {product_of(batch), product_of(rows), product_of(inner)});
  const ValueId right = ops::reshape(graph, wide(b, batch + inner + columns),
                                     {product_of(batch), product_of(inner), product_of(columns)});
  const ValueId product = ops::matmul(graph, left, right);
  const std::string letters = batch + rows + columns;
  std::vector<int64_t> shape;
  for (const char letter : letters) shape.push_back(product_of(std::string(1, letter)));
  return {ops::reshape(graph, product, shape), letters};
}

std::vector<ValueId> convert_einsum(NodeContext& node) {
  Graph& graph = node.graph();
  const Equation equation = parse_equation(node);
  const auto kept_after = [&](size_t index) {
    std::set<char> kept(equation.result.begin(), equation.result.end());
    for (size_t later = index; later < equation.operands.size(); ++later)
      kept.insert(equation.operands[later].begin(), equation.operands[later].end());
    return kept;
  };
  Term term = without_repeats(graph, {node.value(0), equation.operands[0]});
  if (equation.operands.size() == 1) {
    term = summed_over(graph, term, kept_after(1));
  } else {
    for (size_t index = 1; index < equation.operands.size(); ++index) {
      Term next = without_repeats(graph, {node.value(static_cast<int>(index)), equation.operands[index]});
      // What only one of both has and nobody wants later is summed before.
      std::set<char> shared = kept_after(index + 1);
      std::set<char> for_term = shared, for_next = shared;
      for_term.insert(next.letters.begin(), next.letters.end());
      for_next.insert(term.letters.begin(), term.letters.end());
      term = contracted(graph, summed_over(graph, term, for_term), summed_over(graph, next, for_next), shared);
    }
  }
  return {arranged(graph, term, equation.result)};
}

}  // namespace

void add_products(OperatorTable& table) {
  const std::string family = "matrix product";
  table.add(family, "MatMul", convert_matmul);
  table.add(family, "Gemm", convert_gemm);
  table.add(family, "Einsum", convert_einsum);
}

}  // namespace weft::onnx
