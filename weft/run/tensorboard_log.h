// Event files that TensorBoard reads: scalars of steps and epochs, written while the run goes on.
// A file is a sequence of records: u64 length | u32 masked CRC-32C of the length | bytes | u32 masked CRC-32C of the
// bytes (TensorFlow, tsl/lib/io/record_writer.h). The bytes are a protocol-buffer message Event
// (tensorflow/core/util/event.proto).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weft/step/metrics.h"

namespace weft::run {

/// CRC-32C (Castagnoli; RFC 3720, section B.4).
uint32_t crc32c_of(const void* data, size_t bytes);

class TensorboardLog {
 public:
  /// Opens a new file in `directory`, which it makes if needed. It supersedes records of older files there for steps
  /// after `last_step`. `clock` gives seconds since 1970. Error(io).
  TensorboardLog(const std::filesystem::path& directory, int64_t last_step, std::function<double()> clock);
  ~TensorboardLog();
  TensorboardLog(const TensorboardLog&) = delete;
  TensorboardLog& operator=(const TensorboardLog&) = delete;

  /// Writes every kStepsPerRecord steps, as metrics.jsonl does. Allocates nothing.
  void add(const step::StepMetrics& metrics);
  void add(const step::EpochMetrics& metrics);
  void add(const step::ValidationMetrics& metrics);
  /// Makes sure that all records added so far survive a power cut. Error(io).
  void sync() const;

  const std::filesystem::path& path() const { return path_; }

 private:
  void write_scalars(int64_t step, std::initializer_list<std::pair<std::string_view, double>> scalars);
  void write_scalar(int64_t step, const std::string& tag, const std::optional<double>& value);
  void write_record(std::string_view event);

  std::filesystem::path path_;
  std::function<double()> clock_;
  int descriptor_ = -1;
};

}  // namespace weft::run
