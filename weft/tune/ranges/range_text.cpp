#include "weft/tune/ranges/range_text.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/base/toml.h"

namespace weft::tune {

namespace {

constexpr const char* kForms =
    "float:LOW:HIGH, log:LOW:HIGH, int:LOW:HIGH[:STEP], log-int:LOW:HIGH, bool or choice:A,B,C";

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == text.npos ? "" : std::string(text.substr(begin, end - begin + 1));
}

/// At commas outside of brackets, or at '|' where there is one: values may have commas themselves.
std::vector<std::string> split_list(std::string_view text) {
  const char separator = text.find('|') != text.npos ? '|' : ',';
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == separator && (depth == 0 || separator == '|'))
      parts.emplace_back();
    else
      parts.back() += c;
  }
  for (std::string& part : parts) part = trimmed(part);
  return parts;
}

std::vector<std::string> split_numbers(std::string_view text) {
  std::vector<std::string> parts(1);
  for (const char c : text) c == ':' ? static_cast<void>(parts.emplace_back()) : parts.back().push_back(c);
  for (std::string& part : parts) part = trimmed(part);
  return parts;
}

/// The part behind "KEY=".
void read_form(RangeText& range, const std::string& form) {
  const size_t colon = form.find(':');
  const std::string kind = trimmed(form.substr(0, colon));
  const std::string rest = colon == form.npos ? "" : form.substr(colon + 1);
  const std::pair<const char*, RangeText::Kind> kinds[] = {{"float", RangeText::Kind::real},
                                                           {"log", RangeText::Kind::log},
                                                           {"int", RangeText::Kind::integer},
                                                           {"log-int", RangeText::Kind::log_integer},
                                                           {"choice", RangeText::Kind::choice}};
  if (kind == "bool" && colon == form.npos) {
    range.kind = RangeText::Kind::choice;
    range.arguments = {"true", "false"};
    return;
  }
  const auto found =
      std::find_if(std::begin(kinds), std::end(kinds), [&](const auto& one) { return one.first == kind; });
  if (found == std::end(kinds) || colon == form.npos)
    fail(ErrorKind::usage, "{}: '{}' is no range; write {}", range.where, form, kForms);
  range.kind = found->second;
  range.arguments = range.kind == RangeText::Kind::choice ? split_list(rest) : split_numbers(rest);
  const size_t most = range.kind == RangeText::Kind::integer ? 3 : 2;
  if (range.kind != RangeText::Kind::choice && (range.arguments.size() < 2 || range.arguments.size() > most))
    fail(ErrorKind::usage, "{}: '{}' wants {}:LOW:HIGH{}", range.where, form, kind,
         most == 3 ? ", or :STEP behind" : "");
}

/// "FORM", or "FORM if KEY=A,B".
void read_range_text(RangeText& range, const std::string& text) {
  const size_t word = text.rfind(" if ");
  if (word != text.npos) {
    const std::string condition = trimmed(text.substr(word + 4));
    const size_t equals = condition.find('=');
    if (equals == condition.npos || equals == 0)
      fail(ErrorKind::usage, "{}: 'if {}' wants KEY=VALUE, such as `if optimizer.name=sgd`", range.where, condition);
    range.condition = {trimmed(condition.substr(0, equals)), split_list(condition.substr(equals + 1))};
  }
  read_form(range, trimmed(text.substr(0, word)));
}

}  // namespace

RangeText parse_range(const std::string& text) {
  RangeText range{.key = {}, .where = fmt::format("--set-range '{}'", text)};
  const size_t equals = text.find('=');
  if (equals == text.npos || equals == 0)
    fail(ErrorKind::usage, "{}: wants KEY=RANGE, such as optimizer.learning_rate=log:1e-4:1; a range is {}",
         range.where, kForms);
  range.key = trimmed(text.substr(0, equals));
  read_range_text(range, text.substr(equals + 1));
  return range;
}

namespace {

/// As a recipe would have the value behind --set: texts without quotes.
std::string text_of(const toml::node& node, const std::string& where) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return fmt::format("{}", integer->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  const toml::array* array = node.as_array();
  if (array == nullptr) fail(ErrorKind::usage, "{}: wants a text, a number, true or false, or a list", where);
  std::vector<std::string> parts;
  for (const toml::node& element : *array) parts.push_back(text_of(element, where));
  return fmt::format("[{}]", fmt::join(parts, ","));
}

std::vector<std::string> texts_of(const toml::node& node, const std::string& where) {
  const toml::array* array = node.as_array();
  if (array == nullptr) return {text_of(node, where)};
  std::vector<std::string> texts;
  for (const toml::node& element : *array) texts.push_back(text_of(element, where));
  return texts;
}

void read_condition(RangeText& range, const toml::node& node) {
  const toml::table* table = node.as_table();
  if (table == nullptr || table->size() != 1)
    fail(ErrorKind::usage, R"({}: if wants one key with its values, such as {{ "optimizer.name" = ["sgd"] }})",
         range.where);
  // A dotted key without quotes is a table in a table.
  std::string key(table->begin()->first.str());
  const toml::node* values = &table->begin()->second;
  while (const toml::table* inner = values->as_table()) {
    if (inner->size() != 1) fail(ErrorKind::usage, "{}: if wants one key with its values", range.where);
    key += "." + std::string(inner->begin()->first.str());
    values = &inner->begin()->second;
  }
  range.condition = {key, texts_of(*values, range.where)};
}

RangeText range_of_table(const toml::table& table, const std::string& key, const std::string& where) {
  RangeText range{.key = key, .where = where};
  const std::vector<std::string> known = {"range", "log", "step", "choices", "if"};
  for (const auto& [name, node] : table)
    if (std::find(known.begin(), known.end(), name.str()) == known.end())
      fail(ErrorKind::usage, "{}: {} has no '{}'{}", where, key, name.str(),
           suggestion(std::string(name.str()), known));
  if (const toml::node* condition = table.get("if")) read_condition(range, *condition);
  const toml::node *ends = table.get("range"), *choices = table.get("choices"), *step = table.get("step");
  if ((ends != nullptr) == (choices != nullptr))
    fail(ErrorKind::usage, "{}: {} wants either range = [LOW, HIGH] or choices = [A, B]", where, key);
  const toml::node* log = table.get("log");
  if (log != nullptr && !log->is_boolean()) fail(ErrorKind::usage, "{}: log of {} is true or false", where, key);
  if (choices != nullptr) {
    if (log != nullptr || step != nullptr)
      fail(ErrorKind::usage, "{}: {}: choices have neither log nor step; leave it away, or write range = [LOW, HIGH]",
           where, key);
    if (choices->as_array() == nullptr) fail(ErrorKind::usage, "{}: choices of {} are a list: [A, B]", where, key);
    range.kind = RangeText::Kind::choice;
    range.arguments = texts_of(*choices, where);
    return range;
  }
  const toml::array* array = ends->as_array();
  if (array == nullptr || array->size() != 2) fail(ErrorKind::usage, "{}: {} wants range = [LOW, HIGH]", where, key);
  range.arguments = texts_of(*array, where);
  const bool is_log = log != nullptr && log->value_or(false),
             is_whole = array->get(0)->is_integer() && array->get(1)->is_integer();
  range.kind = is_log ? RangeText::Kind::log : RangeText::Kind::real;
  if (step != nullptr || (is_whole && !is_log)) range.kind = RangeText::Kind::integer;
  if (step != nullptr) range.arguments.push_back(text_of(*step, where));
  if (step != nullptr && is_log)
    fail(ErrorKind::usage, "{}: {}: a logarithmic range has no step; leave log or the step away", where, key);
  return range;
}

void read_table(const toml::table& table, const std::string& prefix, const std::string& name,
                std::vector<std::pair<uint32_t, RangeText>>& ranges) {
  for (const auto& [key, node] : table) {
    const std::string path = prefix + std::string(key.str());
    const uint32_t line = key.source().begin.line;
    const std::string where = fmt::format("{}:{}", name, line);
    const toml::table* inner = node.as_table();
    if (inner != nullptr && !inner->contains("range") && !inner->contains("choices")) {
      read_table(*inner, path + ".", name, ranges);
      continue;
    }
    RangeText range{.key = path, .where = where};
    if (inner != nullptr)
      range = range_of_table(*inner, path, where);
    else if (const auto* text = node.as_string())
      read_range_text(range, text->get());
    else
      fail(ErrorKind::usage, "{}: {} wants a range: a text such as \"log:1e-4:1\", or {{ range = [LOW, HIGH] }}", where,
           path);
    ranges.emplace_back(line, std::move(range));
  }
}

}  // namespace

std::vector<RangeText> parse_space_file(std::string_view text, const std::string& name) {
  toml::table table;
  try {
    table = parse_toml(text, name);
  } catch (const toml::parse_error& error) {
    fail(ErrorKind::usage, "{}:{}: is no TOML: {}", name, error.source().begin.line, error.description());
  }
  std::vector<std::pair<uint32_t, RangeText>> by_line;  // toml++ sorts tables by their keys
  read_table(table, "", name, by_line);
  std::stable_sort(by_line.begin(), by_line.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<RangeText> ranges;
  for (auto& [line, range] : by_line) ranges.push_back(std::move(range));
  return ranges;
}

}  // namespace weft::tune
