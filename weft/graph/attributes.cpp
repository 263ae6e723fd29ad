#include "weft/graph/attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "weft/base/error.h"

namespace weft {

namespace {
template <typename T>
const T& get(const std::map<std::string, AttributeValue>& values, const std::string& name) {
  const auto found = values.find(name);
  if (found == values.end()) fail(ErrorKind::internal, "internal error: attribute '{}' is absent", name);
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr)
    fail(ErrorKind::internal, "internal error: attribute '{}' is {}", name, kind_name(found->second));
  return *value;
}
}  // namespace

bool Attributes::boolean(const std::string& name) const { return get<bool>(values_, name); }
int64_t Attributes::integer(const std::string& name) const { return get<int64_t>(values_, name); }
double Attributes::real(const std::string& name) const { return get<double>(values_, name); }
const std::string& Attributes::text(const std::string& name) const { return get<std::string>(values_, name); }
const std::vector<int64_t>& Attributes::integers(const std::string& name) const {
  return get<std::vector<int64_t>>(values_, name);
}
const Constant& Attributes::constant(const std::string& name) const { return get<Constant>(values_, name); }
std::optional<int64_t> Attributes::exact_integer(const std::string& name) const {
  const auto found = values_.find(name);
  const int64_t* value = found == values_.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::string_view kind_name(const AttributeValue& value) {
  constexpr std::string_view names[] = {"boolean", "integer", "real", "text", "integers", "constant"};
  return names[value.index()];
}

std::string to_string(const AttributeValue& value) {
  struct Printer {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const {
      std::string text = fmt::format("{}", v);
      if (text.find_first_of(".en") == text.npos) text += ".0";
      return text;
    }
    std::string operator()(const std::string& v) const {
      std::string text = "\"";
      for (const char c : v) {
        if (c == '"' || c == '\\') text += '\\';
        text += c;
      }
      return text + '"';
    }
    std::string operator()(const std::vector<int64_t>& v) const { return fmt::format("[{}]", fmt::join(v, ",")); }
    std::string operator()(const Constant& v) const {
      if (!v) return "<>";
      return fmt::format("<{} hash={}>", to_string(v->type()), to_string(v->hash()));
    }
  };
  return std::visit(Printer{}, value);
}

AttributeValue parse_attribute_value(std::string_view text) {
  const auto bad = [&]() { fail(ErrorKind::data, "'{}' is no attribute value", text); };
  if (text == "true") return true;
  if (text == "false") return false;
  if (text.empty()) bad();
  if (text.front() == '"') {
    std::string value;
    size_t at = 1;
    for (; at < text.size() && text[at] != '"'; ++at) {
      if (text[at] == '\\' && at + 1 < text.size()) ++at;
      value += text[at];
    }
    if (at + 1 != text.size()) bad();
    return value;
  }
  const char* end = text.data() + text.size();
  if (text.front() == '[') {
    std::vector<int64_t> values;
    const char* at = text.data() + 1;
    if (text.back() != ']') bad();
    --end;
    while (at < end) {
      int64_t value = 0;
      const auto result = std::from_chars(at, end, value);
      if (result.ec != std::errc() || (result.ptr != end && *result.ptr != ',')) bad();
      values.push_back(value);
      at = result.ptr + (result.ptr == end ? 0 : 1);
    }
    return values;
  }
  if (text.find_first_of(".en") == text.npos) {
    int64_t value = 0;
    const auto result = std::from_chars(text.data(), end, value);
    if (result.ec != std::errc() || result.ptr != end) bad();
    return value;
  }
  double value = 0;
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) bad();
  return value;
}

}  // namespace weft
