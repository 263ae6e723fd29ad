#include "weft/tune/study/deployed_run.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "weft/base/error.h"
#include "weft/launch/child_process.h"

namespace weft::tune {

namespace fs = std::filesystem;

namespace {

constexpr int kRepeats = 101;  // of which the median counts

/// What the program wrote; nullopt where it was stopped. Error(data) where it failed.
std::optional<std::string> output_of(const std::vector<std::string>& words,
                                     const std::function<bool()>& stop_requested) {
  launch::ChildProcess process(words, launch::ChildProcess::Output::kept);
  std::string output;
  while (!process.has_ended()) {
    if (stop_requested && stop_requested()) return std::nullopt;
    output += process.wait(std::chrono::milliseconds(20));
  }
  output += process.read();
  if (process.exit_code() == 0) return output;
  const std::string message = last_message(output);
  fail(ErrorKind::data, "it cannot be deployed: {}",
       message.empty() ? fmt::format("`weft {}` ended with code {}", words[1], process.exit_code()) : message);
}

/// What a program says of itself with --json.
double number_of(const std::string& output, const char* key) {
  const size_t begin = output.find('{'), end = output.rfind('}');
  const nlohmann::json report =
      begin == output.npos || end == output.npos
          ? nlohmann::json()
          : nlohmann::json::parse(output.substr(begin, end - begin + 1), nullptr, /*allow_exceptions=*/false);
  check(report.is_object() && report.contains(key), "weft compile and weft infer say numbers with --json");
  return report[key].get<double>();
}

/// Removes the file when it dies.
class TemporaryFile {
 public:
  explicit TemporaryFile(fs::path path) : path_(std::move(path)) {}
  ~TemporaryFile() {
    std::error_code code;
    fs::remove(path_, code);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string name() const { return path_.string(); }

 private:
  fs::path path_;
};

}  // namespace

std::string last_message(const std::string& output) {
  const size_t begin = output.rfind("weft: ");
  if (begin == output.npos) return "";
  const size_t end = std::min(output.find('\n', begin), output.size());
  return output.substr(begin + 6, end - begin - 6);
}

std::optional<Deployed> measure_deployed(const std::string& program, const fs::path& run, int64_t threads,
                                         bool with_latency, const std::function<bool()>& stop_requested) {
  const TemporaryFile file(run / "deployed.weft");
  const std::optional<std::string> compiled =
      output_of({program, "compile", run.string(), file.name(), "--force", "--json"}, stop_requested);
  if (!compiled) return std::nullopt;
  // Of the constants alone: texts such as the recipe would make equal networks differ.
  Deployed deployed{.bytes = static_cast<int64_t>(number_of(*compiled, "constant_bytes"))};
  if (!with_latency) return deployed;
  const std::optional<std::string> output =
      output_of({program, "infer", file.name(), "--batch", "1", "--repeat", std::to_string(kRepeats), "--threads",
                 std::to_string(threads), "--json"},
                stop_requested);
  if (!output) return std::nullopt;
  deployed.latency_seconds = number_of(*output, "median_seconds");
  return deployed;
}

}  // namespace weft::tune
