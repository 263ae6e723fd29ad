#include "weft/train/metrics_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "weft/base/append.h"
#include "weft/base/error.h"
#include "weft/base/files.h"

namespace weft::train {

namespace {

/// JSON knows neither NaN nor infinity.
std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }
std::string number(const std::optional<double>& value) { return value ? number(*value) : "null"; }

/// -1 for a line that is no record.
int64_t step_of(const std::string& line) {
  const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!record.is_object() || !record.contains("step") || !record["step"].is_number_integer()) return -1;
  return record["step"].get<int64_t>();
}

/// Damaged lines go too; the records after them stay.
void cut_after(const std::filesystem::path& path, int64_t last_step) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return;
  std::istringstream lines(read_text(path));
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    if (lines.eof()) break;  // torn: its end never came
    const int64_t step = step_of(line);
    if (step >= 0 && step <= last_step) kept += line + "\n";
  }
  write_atomically(path, kept);
}

}  // namespace

MetricsLog::MetricsLog(std::filesystem::path path, int64_t last_step) : path_(std::move(path)) {
  cut_after(path_, last_step);
  descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail(ErrorKind::io, "cannot write '{}': {}", path_.string(), std::strerror(errno));
}

MetricsLog::~MetricsLog() {
  if (descriptor_ >= 0) close(descriptor_);
}

void MetricsLog::sync() const { sync_appended(descriptor_, path_); }

void MetricsLog::append(std::string_view line) { append_whole(descriptor_, line, path_); }

void MetricsLog::add(const StepMetrics& m) {
  if ((m.step + 1) % kStepsPerRecord != 0) return;
  char line[256];
  char* end =
      fmt::format_to_n(line, sizeof line, R"({{"kind":"step","step":{},"epoch":{},"learning_rate":{},"loss":{})",
                       m.step + 1, m.epoch + 1, m.learning_rate, m.loss)
          .out;
  const auto room = [&] { return static_cast<size_t>(line + sizeof line - end); };
  if (m.gradient_norm && std::isfinite(*m.gradient_norm))
    end = fmt::format_to_n(end, room(), R"(,"gradient_norm":{})", *m.gradient_norm).out;
  else if (m.gradient_norm)
    end = fmt::format_to_n(end, room(), R"(,"gradient_norm":null)").out;
  end = fmt::format_to_n(end, room(), "}}\n").out;
  append({line, static_cast<size_t>(end - line)});
}

void MetricsLog::add(const EpochMetrics& m) {
  std::string line = fmt::format(R"({{"kind":"epoch","step":{},"epoch":{},"train_loss":{},)", m.step, m.epoch + 1,
                                 number(m.train_loss));
  const bool has_classes = m.train_accuracy || m.test_accuracy;
  if (has_classes)
    line += fmt::format(R"("train_accuracy":{},"test_loss":{},"test_accuracy":{},)", number(m.train_accuracy),
                        number(m.test_loss), number(m.test_accuracy));
  else
    line += fmt::format(R"("test_loss":{},"test_rmse":{},"test_r2":{},)", number(m.test_loss), number(m.test_rmse),
                        number(m.test_r2));
  if (m.test_token_accuracy) line += fmt::format(R"("test_token_accuracy":{},)", number(m.test_token_accuracy));
  if (m.test_mean_iou) line += fmt::format(R"("test_mean_iou":{},)", number(m.test_mean_iou));
  if (m.test_perplexity) line += fmt::format(R"("test_perplexity":{},)", number(m.test_perplexity));
  append(fmt::format(R"({}"train_seconds":{:.3f},"{}_per_second":{:.1f}}})"
                     "\n",
                     line, m.train_seconds, m.item, m.items_per_second));
}

}  // namespace weft::train
