// Texts: joining, cutting and cleaning them, and counting n-grams. No graph holds texts, so the host computes all of
// it.
#include <algorithm>
#include <map>
#include <set>

#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"
#include "weft/tensor/element.h"

namespace weft::onnx {

namespace {

using Values = std::vector<HostValue>;

Values join_texts(const HostContext& node) {
  const StringTensor &a = node.strings(0), &b = node.strings(1);
  StringTensor result{broadcast_shape(node, a.shape, b.shape), {}};
  if (!has_bounded_size(result.shape)) node.fail("would give " + to_string(result.shape));
  const auto place_in = [&](const Shape& shape, int64_t index) {
    int64_t place = 0, stride = 1;
    for (int axis = result.shape.rank() - 1, own = shape.rank() - 1; own >= 0; --axis, --own) {
      if (shape[own] != 1) place += index % result.shape[axis] * stride;
      stride *= shape[own];
      index /= result.shape[axis];
    }
    return static_cast<size_t>(place);
  };
  for (int64_t index = 0; index < result.shape.elements(); ++index)
    result.values.push_back(a.values[place_in(a.shape, index)] + b.values[place_in(b.shape, index)]);
  return {result};
}

/// By a delimiter; without one at runs of white space. What no cut is left for stays whole, as in Python's str.split.
std::vector<std::string> parts_of(const std::string& text, const std::string& delimiter, int64_t most_cuts) {
  std::vector<std::string> parts;
  constexpr const char* kSpace = " \t\n\r\f\v";
  size_t at = 0;
  if (delimiter.empty()) {
    while ((at = text.find_first_not_of(kSpace, at)) != std::string::npos) {
      const bool is_last = static_cast<int64_t>(parts.size()) == most_cuts;
      const size_t end = is_last ? text.size() : std::min(text.find_first_of(kSpace, at), text.size());
      parts.push_back(text.substr(at, end - at));
      at = end;
    }
    return parts;
  }
  for (size_t end = 0; static_cast<int64_t>(parts.size()) != most_cuts; at = end + delimiter.size()) {
    end = text.find(delimiter, at);
    if (end == std::string::npos) break;
    parts.push_back(text.substr(at, end - at));
  }
  parts.push_back(text.substr(at));
  return parts;
}

/// The parts, filled up with empty texts, and how many there are of each text.
Values split_texts(const HostContext& node) {
  const StringTensor& x = node.strings(0);
  const std::string delimiter = node.text("delimiter", "");
  const int64_t most_cuts = node.has_attribute("maxsplit") ? node.integer("maxsplit") : -1;
  std::vector<std::vector<std::string>> all;
  size_t longest = 0;
  Tensor counts(DType::i64, x.shape);
  for (const std::string& text : x.values) {
    all.push_back(parts_of(text, delimiter, most_cuts));
    longest = std::max(longest, all.back().size());
    counts.data_as<int64_t>()[all.size() - 1] = static_cast<int64_t>(all.back().size());
  }
  std::vector<int64_t> shape = x.shape.dims();
  shape.push_back(static_cast<int64_t>(longest));
  StringTensor result{Shape(shape), {}};
  for (auto& parts : all) {
    parts.resize(longest);
    result.values.insert(result.values.end(), parts.begin(), parts.end());
  }
  return {result, counts};
}

/// Letters of ASCII alone: others keep their case in every locale that weft knows.
std::string in_case(std::string text, bool is_upper) {
  for (char& letter : text) {
    if (is_upper && letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
    if (!is_upper && letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return text;
}

Values normalize_texts(const HostContext& node) {
  const StringTensor& x = node.strings(0);
  const int rank = x.shape.rank();
  if (rank < 1 || rank > 2 || (rank == 2 && x.shape[0] != 1))
    node.fail("wants texts [C] or [1,C], got " + to_string(x.shape));
  const bool minds_case = node.integer("is_case_sensitive", 0) != 0;
  const std::string action = node.text("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER") node.fail("has the unknown action '" + action + "'");
  std::set<std::string> stopwords;
  if (node.has_attribute("stopwords"))
    for (const std::string& word : node.texts("stopwords")) stopwords.insert(minds_case ? word : in_case(word, false));
  StringTensor result;
  for (const std::string& word : x.values)
    if (!stopwords.contains(minds_case ? word : in_case(word, false)))
      result.values.push_back(action == "NONE" ? word : in_case(word, action == "UPPER"));
  if (result.values.empty()) result.values.emplace_back();
  const auto count = static_cast<int64_t>(result.values.size());
  result.shape = rank == 2 ? Shape{1, count} : Shape{count};
  return {result};
}

/// How often the n-grams of a pool occur, as whole numbers or texts.
template <typename Word>
class GramCounter {
 public:
  GramCounter(const HostContext& node, const std::vector<Word>& pool)
      : least_(node.integer("min_gram_length")),
        most_(node.integer("max_gram_length")),
        skips_(node.integer("max_skip_count")),
        places_(node.integers("ngram_indexes")) {
    if (least_ < 1 || most_ < least_ || skips_ < 0 || most_ > 1024 || skips_ > 1024)
      node.fail(fmt::format("has n-grams of {} to {} words with {} skipped", least_, most_, skips_));
    const auto starts = node.integers("ngram_counts");
    size_t gram = 0;
    for (size_t length = 1; length <= starts.size(); ++length) {
      const int64_t begin = starts[length - 1],
                    end = length < starts.size() ? starts[length] : static_cast<int64_t>(pool.size());
      if (begin < 0 || end < begin || end > static_cast<int64_t>(pool.size()) ||
          (end - begin) % static_cast<int64_t>(length) != 0)
        node.fail("has ngram_counts that do not fit its pool");
      for (int64_t at = begin; at < end; at += static_cast<int64_t>(length), ++gram) {
        if (gram >= places_.size() || places_[gram] < 0 || places_[gram] >= (int64_t{1} << 28))
          node.fail("has no place for each n-gram of its pool");
        grams_[std::vector<Word>(pool.begin() + at, pool.begin() + at + static_cast<int64_t>(length))] = gram;
      }
    }
  }

  int64_t width() const { return places_.empty() ? 0 : *std::max_element(places_.begin(), places_.end()) + 1; }

  /// Calls found(n-gram) for each of the words. Of single words none is skipped.
  template <typename Found>
  void count(const std::vector<Word>& words, const Found& found) const {
    const auto size = static_cast<int64_t>(words.size());
    for (int64_t length = least_; length <= most_; ++length)
      for (int64_t step = 1; step <= (length == 1 ? 1 : skips_ + 1); ++step)
        for (int64_t begin = 0; begin + (length - 1) * step < size; ++begin) {
          std::vector<Word> gram;
          for (int64_t each = 0; each < length; ++each) gram.push_back(words[static_cast<size_t>(begin + each * step)]);
          if (const auto known = grams_.find(gram); known != grams_.end()) found(known->second);
        }
  }

  int64_t place(size_t gram) const { return places_[gram]; }

 private:
  int64_t least_, most_, skips_;
  std::vector<int64_t> places_;
  std::map<std::vector<Word>, size_t> grams_;
};

template <typename Word>
Values count_grams(const HostContext& node, const std::vector<Word>& pool, const std::vector<Word>& words,
                   const Shape& shape) {
  if (shape.rank() < 1 || shape.rank() > 2) node.fail("wants words [C] or [N,C], got " + to_string(shape));
  const GramCounter<Word> counter(node, pool);
  const std::string mode = node.text("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") node.fail("has the unknown mode '" + mode + "'");
  const auto weights = node.reals("weights");
  const int64_t rows = shape.rank() == 2 ? shape[0] : 1, columns = shape[shape.rank() - 1], width = counter.width();
  const Shape result_shape = shape.rank() == 2 ? Shape{rows, width} : Shape{width};
  if (!has_bounded_size(result_shape)) node.fail("would give " + to_string(result_shape));
  Tensor result(DType::f32, result_shape);
  std::fill_n(result.data_as<float>(), result.elements(), 0.0F);
  for (int64_t row = 0; row < rows; ++row) {
    std::map<size_t, int64_t> counts;
    counter.count({words.begin() + row * columns, words.begin() + (row + 1) * columns},
                  [&](size_t gram) { ++counts[gram]; });
    for (const auto& [gram, count] : counts) {
      const double weight = gram < weights.size() ? weights[gram] : 1;
      const double value = mode == "TF"    ? static_cast<double>(count)
                           : mode == "IDF" ? weight
                                           : weight * static_cast<double>(count);
      result.data_as<float>()[row * width + counter.place(gram)] = static_cast<float>(value);
    }
  }
  return {result};
}

Values run_tfidf(const HostContext& node) {
  if (node.has_attribute("pool_strings")) {
    const StringTensor& words = node.strings(0);
    return count_grams(node, node.texts("pool_strings"), words.values, words.shape);
  }
  return count_grams(node, node.integers("pool_int64s"), integers_of(node.tensor(0)), node.tensor(0).shape());
}

}  // namespace

void add_texts(OperatorTable& table) {
  const std::string family = "text";
  table.add_on_host(family, "StringConcat", join_texts);
  table.add_on_host(family, "StringSplit", split_texts);
  table.add_on_host(family, "StringNormalizer", normalize_texts);
  table.add_on_host(family, "TfIdfVectorizer", run_tfidf);
}

}  // namespace weft::onnx
