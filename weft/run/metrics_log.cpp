#include "weft/run/metrics_log.h"

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

namespace weft::run {

namespace {

/// JSON knows neither NaN nor infinity.
std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }
std::string number(const std::optional<double>& value) { return value ? number(*value) : "null"; }

/// False for a line that is no record.
bool is_done(const std::string& line, const step::Position& position) {
  const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  const auto number = [&](const char* key) {
    return record.contains(key) && record[key].is_number_integer() ? record[key].get<int64_t>() : -1;
  };
  if (!record.is_object() || number("step") < 0 || number("step") > position.step) return false;
  const nlohmann::json kind = record.value("kind", nlohmann::json());
  // A run that goes on measures its test data again, and the validation part where it was stopped before that.
  if (kind == "test") return number("step") < position.step;
  if (kind == "validation") return number("step") < position.step || position.validated_step == position.step;
  // The last step of an epoch may be done and the epoch not: an evaluation that was cut off is done again.
  return kind != "epoch" || number("epoch") <= position.epoch;
}

/// Damaged lines go too; the records after them stay.
void cut_after(const std::filesystem::path& path, const step::Position& position) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return;
  std::istringstream lines(read_text(path));
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    if (lines.eof()) break;  // torn: its end never came
    if (is_done(line, position)) kept += line + "\n";
  }
  write_atomically(path, kept);
}

}  // namespace

MetricsLog::MetricsLog(std::filesystem::path path, const step::Position& position) : path_(std::move(path)) {
  cut_after(path_, position);
  descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail(ErrorKind::io, "cannot write '{}': {}", path_.string(), std::strerror(errno));
}

MetricsLog::~MetricsLog() {
  if (descriptor_ >= 0) close(descriptor_);
}

void MetricsLog::sync() const { sync_appended(descriptor_, path_); }

void MetricsLog::append(std::string_view line) { append_whole(descriptor_, line, path_); }

void MetricsLog::add(const step::StepMetrics& m) {
  if ((m.step + 1) % kStepsPerRecord != 0) return;
  char line[448];
  char* end = fmt::format_to_n(line, sizeof line, R"({{"kind":"step","step":{},"epoch":{},"learning_rate":{})",
                               m.step + 1, m.epoch + 1, m.learning_rate)
                  .out;
  const auto room = [&] { return static_cast<size_t>(line + sizeof line - end); };
  const auto add = [&](const char* key, double value) {
    if (std::isfinite(value))
      end = fmt::format_to_n(end, room(), R"(,"{}":{})", key, value).out;
    else
      end = fmt::format_to_n(end, room(), R"(,"{}":null)", key).out;
  };
  add("loss", m.loss);
  end = fmt::format_to_n(end, room(), R"(,"batch":{})", m.batch).out;
  if (m.image_height > 0) end = fmt::format_to_n(end, room(), R"(,"image_height":{})", m.image_height).out;
  if (m.momentum) add("momentum", *m.momentum);
  if (m.gradient_norm) add("gradient_norm", *m.gradient_norm);
  if (m.loss_scale) {
    add("loss_scale", *m.loss_scale);
    end = fmt::format_to_n(end, room(), R"(,"skipped_steps":{})", m.skipped_steps).out;
  }
  end = fmt::format_to_n(end, room(), "}}\n").out;
  append({line, static_cast<size_t>(end - line)});
}

void MetricsLog::add(const step::EpochMetrics& m) {
  std::string line = fmt::format(R"({{"kind":"epoch","step":{},"epoch":{},"train_loss":{},)", m.step, m.epoch + 1,
                                 number(m.train_loss));
  if (m.train_accuracy) line += fmt::format(R"("train_accuracy":{},)", number(m.train_accuracy));
  if (m.validation_loss || !m.validation_metrics.empty()) {
    line += fmt::format(R"("validation_loss":{},)", number(m.validation_loss));
    for (const auto& [name, value] : m.validation_metrics)
      line += fmt::format(R"("validation_{}":{},)", name, number(value));
  }
  line += fmt::format(R"("test_loss":{},)", number(m.test_loss));
  for (const auto& [name, value] : m.test_metrics) line += fmt::format(R"("test_{}":{},)", name, number(value));
  if (m.loss_scale)
    line += fmt::format(R"("loss_scale":{},"skipped_steps":{},)", number(m.loss_scale), m.skipped_steps);
  append(fmt::format(
      R"({}"train_seconds":{:.3f},"{}_per_second":{:.1f},"step_seconds":{:.3f},"input_wait_seconds":{:.3f}}})"
      "\n",
      line, m.train_seconds, m.item, m.items_per_second, m.step_seconds, m.input_wait_seconds));
}

void MetricsLog::add(const step::ValidationMetrics& m) {
  std::string line = fmt::format(R"({{"kind":"validation","step":{},"epoch":{},"validation_loss":{},)", m.step,
                                 m.epoch + 1, number(m.loss));
  for (const auto& [name, value] : m.metrics) line += fmt::format(R"("validation_{}":{},)", name, number(value));
  append(fmt::format("{}\"train_seconds\":{:.3f}}}\n", line, m.train_seconds));
}

void MetricsLog::add(const TestMetrics& m) {
  std::string line = fmt::format(R"({{"kind":"test","step":{},"checkpoint_step":{},"test_loss":{})", m.step,
                                 m.checkpoint_step, number(m.loss));
  for (const auto& [name, value] : m.metrics) line += fmt::format(R"(,"test_{}":{})", name, number(value));
  append(line + "}\n");
}

void MetricsLog::add(const step::NoiseMetrics& m) {
  append(fmt::format(
      R"({{"kind":"noise","step":{},"small_batch":{},"small_square":{},"large_batch":{},"large_square":{}}})"
      "\n",
      m.step, number(m.small_batch), number(m.small_square), number(m.large_batch), number(m.large_square)));
}

void MetricsLog::add(int64_t step, const train::RankPace& pace, const std::string& host) {
  append(fmt::format(
      R"({{"kind":"rank_pace","step":{},"rank":{},"host":{},"is_slow":{},"own_seconds":{},"others_seconds":{},)"
      R"("input_wait_seconds":{}}})"
      "\n",
      step, pace.rank, nlohmann::json(host).dump(), pace.is_slow, number(pace.own.step), number(pace.others_step),
      number(pace.own.input_wait)));
}

void MetricsLog::add(int64_t step, const train::ShareChange& change) {
  append(nlohmann::ordered_json({{"kind", "shares"},
                                 {"step", step},
                                 {"from_step", change.from_step},
                                 {"grains", change.after},
                                 {"before", change.before}})
             .dump() +
         "\n");
}

}  // namespace weft::run
