#include "weft/spec/compile_options.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft::spec {

namespace {

/// Empty where the machine has it, else what it lacks and what to do.
std::string lacks(const std::string& precision, const Backend& backend) {
  const std::optional<DType> dtype = parse_dtype(precision);
  check(dtype.has_value(), "a resolved precision is a type");
  if (*dtype != DType::bf16 || backend.computes_fast(*dtype)) return "";
  return backend.what_lacks(*dtype) + "; choose f32, or auto for what fits the machine";
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

/// "winograd=off" is an exception from the kernels, in whatever type, which users write among those from the type. From
/// here on it is none of the precision's.
constexpr const char *kWinograd = "winograd", *kOff = "off";

struct Entry {
  std::string pattern, type;
};

/// "softmax=f32, head*=f32, winograd=off"
std::vector<Entry> parse_entries(const std::string& text) {
  std::vector<Entry> entries;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string entry = trimmed(text.substr(begin, end - begin));
    begin = end + 1;
    const size_t equals = entry.rfind('=');
    const std::string pattern = equals == std::string::npos ? "" : trimmed(entry.substr(0, equals));
    if (pattern.empty())
      fail(ErrorKind::usage, "precision_of: '{}' is no NAME=TYPE; write such as 'softmax=f32, head*=f32'", entry);
    entries.push_back({pattern, trimmed(entry.substr(equals + 1))});
  }
  return entries;
}

bool leaves_winograd_out(const Entry& entry) { return entry.pattern == kWinograd && entry.type == kOff; }

struct Exceptions {
  std::vector<passes::PrecisionOverride> overrides;
  bool winograd = true;
};

Exceptions parse_exceptions(const RunSpec& spec) {
  Exceptions exceptions;
  for (const Entry& entry : parse_entries(spec.precision_of)) {
    if (leaves_winograd_out(entry)) {
      exceptions.winograd = false;
      continue;
    }
    if (entry.type != "f32" && entry.type != spec.precision)
      fail(ErrorKind::usage, "precision_of: '{}={}' wants {}, and the run computes in {}; give f32{}", entry.pattern,
           entry.type, entry.type, spec.precision, spec.precision == "f32" ? "" : " or " + spec.precision);
    exceptions.overrides.push_back({entry.pattern, parse_dtype(entry.type).value()});
  }
  return exceptions;
}

}  // namespace

void fall_to_f32(RunSpec& spec) {
  const std::vector<Entry> entries = parse_entries(spec.precision_of);
  const bool direct = std::any_of(entries.begin(), entries.end(), leaves_winograd_out);
  spec.precision = "f32";
  spec.precision_of = direct ? fmt::format("{}={}", kWinograd, kOff) : "";
}

CompileOptions compile_options(const RunSpec& given, const Backend& backend) {
  RunSpec spec = given;
  choose_automatic_precision(spec, backend);
  if (const std::string missing = lacks(spec.precision, backend); !missing.empty())
    fail(ErrorKind::usage, "precision {}: {}", spec.precision, missing);
  Exceptions exceptions = parse_exceptions(spec);
  // Winograd's kernels for f32 buy time with workspace, which a limit has better uses for.
  const bool is_short = !spec.memory_limit.empty() && spec.precision == "f32";
  return {.precision = {parse_dtype(spec.precision).value(), std::move(exceptions.overrides)},
          .grants_workspace = exceptions.winograd && !is_short,
          .gathers_rows = spec.late_multiply,
          .threads = static_cast<int>(spec.threads),
          .offload_bytes_per_second =
              spec.offload.empty() ? 0 : static_cast<double>(parse_bytes(spec.offload_rate).value())};
}

void choose_precision(RunSpec& spec, const std::string& given, const Backend& backend,
                      const std::function<void(const std::string&)>& note) {
  if (!given.empty()) {
    set_field(spec, "precision", given == "auto" ? automatic_precision(backend) : given, "--precision");
    if (spec.precision == "f32") fall_to_f32(spec);
    return;
  }
  if (lacks(spec.precision, backend).empty()) return;
  note(fmt::format("trained in {}, which this machine lacks; computing in f32", spec.precision));
  fall_to_f32(spec);
}

std::string automatic_precision(const Backend& backend) { return backend.computes_fast(DType::bf16) ? "bf16" : "f32"; }

void choose_automatic_precision(RunSpec& spec, const Backend& backend) {
  if (spec.precision == "auto") spec.precision = automatic_precision(backend);
}

}  // namespace weft::spec
