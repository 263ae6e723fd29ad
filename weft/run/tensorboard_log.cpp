#include "weft/run/tensorboard_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "weft/base/append.h"
#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/host_name.h"
#include "weft/run/metrics_log.h"

namespace weft::run {

namespace {

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
    table[byte] = crc;
  }
  return table;
}

/// Records hold checksums of data that may themselves hold checksums, hence the mask (record_writer.h).
uint32_t masked_crc(const void* data, size_t bytes) { return std::rotr(crc32c_of(data, bytes), 15) + 0xa282ead8u; }

/// A protocol-buffer message being written into a fixed buffer
/// (https://protobuf.dev/programming-guides/encoding: key = field number << 3 | wire type).
class Message {
 public:
  void number(int field, int64_t value) {
    varint(static_cast<uint64_t>(field) << 3);
    varint(static_cast<uint64_t>(value));
  }
  void real64(int field, double value) { fixed(field, 1, &value, sizeof value); }
  void real32(int field, float value) { fixed(field, 5, &value, sizeof value); }
  void bytes(int field, std::string_view value) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(value.size());
    append(value.data(), value.size());
  }
  std::string_view content() const { return {buffer_.data(), size_}; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) byte(static_cast<uint8_t>(value | 0x80));
    byte(static_cast<uint8_t>(value));
  }
  void fixed(int field, int wire_type, const void* value, size_t size) {
    varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type));
    append(value, size);
  }
  void byte(uint8_t value) { append(&value, 1); }
  void append(const void* data, size_t size) {
    if (size_ + size > buffer_.size()) fail(ErrorKind::internal, "an event of more than {} bytes", buffer_.size());
    std::memcpy(buffer_.data() + size_, data, size);
    size_ += size;
  }

  std::array<char, 1024> buffer_;
  size_t size_ = 0;
};

/// Event { wall_time = 1, step = 2, and one of file_version = 3, summary = 5, session_log = 7 }
Message event(double seconds, int64_t step) {
  Message message;
  message.real64(1, seconds);
  message.number(2, step);
  return message;
}

/// TensorBoard reads the files of a directory in the order of their names. Seconds alone may repeat.
int open_new(const std::filesystem::path& directory, double seconds, std::filesystem::path& path) {
  for (int count = 0;; ++count) {
    path = directory / fmt::format("events.out.tfevents.{:010.0f}.{}.{}.{}", seconds, host_name(), getpid(), count);
    const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    if (descriptor >= 0) return descriptor;
    if (errno != EEXIST) fail(ErrorKind::io, "cannot write '{}': {}", path.string(), std::strerror(errno));
  }
}

}  // namespace

uint32_t crc32c_of(const void* data, size_t bytes) {
  static constexpr std::array<uint32_t, 256> table = make_crc_table();
  const auto* at = static_cast<const uint8_t*>(data);
  uint32_t crc = ~0u;
  for (size_t index = 0; index < bytes; ++index) crc = (crc >> 8) ^ table[(crc ^ at[index]) & 0xff];
  return ~crc;
}

TensorboardLog::TensorboardLog(const std::filesystem::path& directory, int64_t last_step, std::function<double()> clock)
    : clock_(std::move(clock)) {
  make_directories(directory);
  descriptor_ = open_new(directory, clock_(), path_);
  Message version = event(clock_(), 0);
  version.bytes(3, "brain.Event:2");
  write_record(version.content());
  // SessionLog { status = 1: START } makes TensorBoard drop what it has of this and later steps.
  Message session;
  session.number(1, 1);
  Message start = event(clock_(), last_step + 1);
  start.bytes(7, session.content());
  write_record(start.content());
}

TensorboardLog::~TensorboardLog() {
  if (descriptor_ >= 0) close(descriptor_);
}

void TensorboardLog::write_record(std::string_view event) {
  std::array<char, 1100> record;
  const uint64_t length = event.size();
  const uint32_t length_crc = masked_crc(&length, sizeof length), crc = masked_crc(event.data(), event.size());
  size_t size = 0;
  const auto put = [&](const void* data, size_t bytes) {
    std::memcpy(record.data() + size, data, bytes);
    size += bytes;
  };
  put(&length, sizeof length);
  put(&length_crc, sizeof length_crc);
  put(event.data(), event.size());
  put(&crc, sizeof crc);
  append_whole(descriptor_, {record.data(), size}, path_);
}

void TensorboardLog::sync() const { sync_appended(descriptor_, path_); }

void TensorboardLog::write_scalars(int64_t step, std::initializer_list<std::pair<std::string_view, double>> scalars) {
  Message summary;  // { repeated Value value = 1 { tag = 1, simple_value = 2 } }
  for (const auto& [tag, scalar] : scalars) {
    Message value;
    value.bytes(1, tag);
    value.real32(2, static_cast<float>(scalar));
    summary.bytes(1, value.content());
  }
  Message message = event(clock_(), step);
  message.bytes(5, summary.content());
  write_record(message.content());
}

void TensorboardLog::add(const step::StepMetrics& m) {
  if ((m.step + 1) % kStepsPerRecord != 0) return;
  write_scalars(
      m.step + 1,
      {{"step/loss", m.loss}, {"step/learning_rate", m.learning_rate}, {"step/batch", static_cast<double>(m.batch)}});
  if (m.image_height > 0) write_scalars(m.step + 1, {{"step/image_height", static_cast<double>(m.image_height)}});
  if (m.momentum) write_scalars(m.step + 1, {{"step/momentum", *m.momentum}});
  if (m.gradient_norm) write_scalars(m.step + 1, {{"step/gradient_norm", *m.gradient_norm}});
  if (m.loss_scale)
    write_scalars(m.step + 1,
                  {{"step/loss_scale", *m.loss_scale}, {"step/skipped_steps", static_cast<double>(m.skipped_steps)}});
}

void TensorboardLog::write_scalar(int64_t step, const std::string& tag, const std::optional<double>& value) {
  if (value) write_scalars(step, {{tag, *value}});
}

void TensorboardLog::add(const step::EpochMetrics& m) {
  const std::string rate = fmt::format("epoch/{}_per_second", m.item);
  write_scalars(m.step, {{"epoch/train_loss", m.train_loss}, {rate, m.items_per_second}});
  write_scalars(m.step, {{"epoch/train_seconds", m.train_seconds}});
  write_scalar(m.step, "epoch/train_accuracy", m.train_accuracy);
  write_scalar(m.step, "epoch/validation_loss", m.validation_loss);
  for (const auto& [name, value] : m.validation_metrics) write_scalar(m.step, "epoch/validation_" + name, value);
  write_scalar(m.step, "epoch/test_loss", m.test_loss);
  for (const auto& [name, value] : m.test_metrics) write_scalar(m.step, "epoch/test_" + name, value);
}

void TensorboardLog::add(const step::ValidationMetrics& m) {
  write_scalar(m.step, "step/validation_loss", m.loss);
  for (const auto& [name, value] : m.metrics) write_scalar(m.step, "step/validation_" + name, value);
}

}  // namespace weft::run
