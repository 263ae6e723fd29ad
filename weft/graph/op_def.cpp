#include "weft/graph/op_def.h"

#include <fmt/format.h>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/graph/marks.h"

namespace weft {

std::string InferContext::describe(int input) const {
  return fmt::format("'{}' {}", input_names[static_cast<size_t>(input)], to_string(shape(input)));
}

void InferContext::fail(const std::string& message) const {
  throw Error(ErrorKind::shape, fmt::format("[{}] '{}': {}", op.name, node_name, message));
}

void InferContext::require_rank(int input, int rank) const {
  if (shape(input).rank() != rank)
    fail(fmt::format("{} wants {} dimensions, got {}",
                     op.inputs[std::min<size_t>(static_cast<size_t>(input), op.inputs.size() - 1)], rank,
                     describe(input)));
}

void InferContext::require_dtype(int input, DType wanted) const {
  if (dtype(input) != wanted)
    fail(fmt::format("{} wants {}, got {} of {}; add a cast",
                     op.inputs[std::min<size_t>(static_cast<size_t>(input), op.inputs.size() - 1)], name_of(wanted),
                     describe(input), name_of(dtype(input))));
}

DType InferContext::require_compute_dtype(int input) const {
  const DType given = dtype(input);
  if (given != DType::bf16 && given != DType::f16) require_dtype(input, DType::f32);
  return given;
}

DType InferContext::require_number(int input) const {
  if (dtype(input) == DType::boolean)
    fail(fmt::format("{} wants numbers, got {} of bool; add a cast, or use logical_and, logical_or, logical_xor",
                     op.inputs[static_cast<size_t>(input)], describe(input)));
  return dtype(input);
}

DType InferContext::require_integer(int input) const {
  if (!is_integer(dtype(input)))
    fail(fmt::format("{} wants integers, got {} of {}; add a cast", op.inputs[static_cast<size_t>(input)],
                     describe(input), name_of(dtype(input))));
  return dtype(input);
}

void InferContext::require_same_shape(int input, int other) const {
  if (shape(input) != shape(other))
    fail(fmt::format("{} and {} must have the same shape", describe(input), describe(other)));
}

std::string_view name_of(PrecisionRule rule) {
  constexpr std::string_view names[] = {"full", "follow", "reduced"};
  return names[static_cast<size_t>(rule)];
}

void OpRegistry::add(OpDef op) {
  const std::string name = op.name;
  if (!ops_.emplace(name, std::move(op)).second) weft::fail(ErrorKind::internal, "op '{}' is registered twice", name);
}

void OpRegistry::set_symbolic_rule(const std::string& op,
                                   std::function<std::vector<SymbolicType>(const SymbolicContext&)> rule) {
  const auto found = ops_.find(op);
  check(found != ops_.end(), "a rule for symbols belongs to an op that exists");
  found->second.infer_symbolic = std::move(rule);
}

const OpDef* OpRegistry::find(const std::string& name) const {
  const auto found = ops_.find(name);
  return found == ops_.end() ? nullptr : &found->second;
}

const OpDef& OpRegistry::get(const std::string& name) const {
  if (const OpDef* op = find(name)) return *op;
  std::vector<std::string> known;
  for (const auto& [candidate, op] : ops_) known.push_back(candidate);
  fail(ErrorKind::usage, "there is no op '{}'{}; `weft ops` lists them", name, suggestion(name, known));
}

namespace {

bool is_exact_in_double(int64_t whole) {
  const auto real = static_cast<double>(whole);
  return real < 0x1p63 && static_cast<int64_t>(real) == whole;
}

}  // namespace

Attributes complete_attributes(const OpDef& op, const std::string& node_name, const Attributes& given) {
  Attributes complete;
  for (const AttributeSpec& spec : op.attributes) {
    const auto found = given.values().find(spec.name);
    if (found == given.values().end()) {
      if (spec.required)
        fail(ErrorKind::usage, "[{}] '{}': attribute '{}' is required: {}", op.name, node_name, spec.name, spec.help);
      complete.set(spec.name, spec.value);
      continue;
    }
    AttributeValue value = found->second;
    if (std::holds_alternative<double>(spec.value) && std::holds_alternative<int64_t>(value)) {
      const int64_t whole = std::get<int64_t>(value);
      if (is_exact_in_double(whole)) {
        value = static_cast<double>(whole);
      } else if (!spec.keeps_integers) {
        fail(ErrorKind::usage, "[{}] '{}': attribute '{}' is a real, which cannot hold {} exactly", op.name, node_name,
             spec.name, whole);
      }
    }
    const bool is_kept = spec.keeps_integers && std::holds_alternative<int64_t>(value);
    if (value.index() != spec.value.index() && !is_kept)
      fail(ErrorKind::usage, "[{}] '{}': attribute '{}' wants {}, got {} ({})", op.name, node_name, spec.name,
           kind_name(spec.value), to_string(value), kind_name(value));
    complete.set(spec.name, std::move(value));
  }
  for (const auto& [name, value] : given.values()) {
    if (complete.has(name)) continue;
    if (accepts_mark(op, node_name, name, value)) {
      complete.set(name, value);
      continue;
    }
    std::vector<std::string> known;
    for (const AttributeSpec& spec : op.attributes) known.push_back(spec.name);
    fail(ErrorKind::usage, "[{}] '{}': there is no attribute '{}'{}", op.name, node_name, name,
         suggestion(name, known));
  }
  return complete;
}

}  // namespace weft
