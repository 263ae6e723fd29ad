#include "weft/run/tensorboard_log.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/support/files_for_tests.h"
#include "weft/base/files.h"

namespace weft::run {
namespace {

/// Wire format of protocol buffers, read back field by field.
struct Fields {
  std::multimap<int, std::string> bytes;
  std::map<int, uint64_t> numbers;
  std::map<int, double> reals;
};

uint64_t read_varint(std::string_view& text) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<uint8_t>(text.at(0));
    text.remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
}

template <typename T>
T read_fixed(std::string_view& text) {
  T value;
  std::memcpy(&value, text.substr(0, sizeof value).data(), sizeof value);
  text.remove_prefix(sizeof value);
  return value;
}

Fields parse(std::string_view text) {
  Fields fields;
  while (!text.empty()) {
    const uint64_t key = read_varint(text);
    const int field = static_cast<int>(key >> 3);
    switch (key & 7) {
      case 0:
        fields.numbers[field] = read_varint(text);
        break;
      case 1:
        fields.reals[field] = read_fixed<double>(text);
        break;
      case 2: {
        const uint64_t size = read_varint(text);
        fields.bytes.emplace(field, text.substr(0, size));
        text.remove_prefix(size);
        break;
      }
      case 5:
        fields.reals[field] = static_cast<double>(read_fixed<float>(text));
        break;
      default:
        ADD_FAILURE() << "wire type " << (key & 7);
        return fields;
    }
  }
  return fields;
}

uint32_t unmask(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

std::vector<Fields> read_events(const std::filesystem::path& path) {
  const std::string content = read_text(path);
  std::string_view rest = content;
  std::vector<Fields> events;
  while (!rest.empty()) {
    EXPECT_EQ(crc32c_of(rest.data(), 8), unmask([&] {
                std::string_view crc = rest.substr(8, 4);
                return read_fixed<uint32_t>(crc);
              }()));
    const auto length = read_fixed<uint64_t>(rest);
    rest.remove_prefix(4);
    const std::string_view event = rest.substr(0, length);
    rest.remove_prefix(length);
    EXPECT_EQ(crc32c_of(event.data(), event.size()), unmask(read_fixed<uint32_t>(rest)));
    events.push_back(parse(event));
  }
  return events;
}

std::map<std::string, double> scalars_of(const Fields& event) {
  std::map<std::string, double> scalars;
  if (!event.bytes.contains(5)) return scalars;
  for (const auto& [field, text] : parse(event.bytes.find(5)->second).bytes) {
    const Fields value = parse(text);
    scalars[value.bytes.find(1)->second] = value.reals.at(2);
  }
  return scalars;
}

double fixed_clock() { return 1700000000.5; }

using TensorboardLogTest = FilesTest;

TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(crc32c_of("123456789", 9), 0xe3069283u);
  const std::vector<uint8_t> zeros(32, 0), ones(32, 0xff);  // RFC 3720, section B.4
  EXPECT_EQ(crc32c_of(zeros.data(), 32), 0x8a9136aau);
  EXPECT_EQ(crc32c_of(ones.data(), 32), 0x62a8ab43u);
}

TEST_F(TensorboardLogTest, BeginsWithTheVersionAndTheStepToCome) {
  const TensorboardLog log(path("new"), 40, fixed_clock);
  const std::vector<Fields> events = read_events(log.path());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].bytes.find(3)->second, "brain.Event:2");
  EXPECT_EQ(events[0].reals.at(1), 1700000000.5);
  EXPECT_EQ(events[1].numbers.at(2), 41u);
  EXPECT_EQ(parse(events[1].bytes.find(7)->second).numbers.at(1), 1u);
}

TEST_F(TensorboardLogTest, WritesEachTwentiethStep) {
  TensorboardLog log(path(""), 0, fixed_clock);
  for (int64_t step = 0; step < 40; ++step)
    log.add(step::StepMetrics{.step = step, .learning_rate = 0.25, .loss = 2.0, .batch = 64});
  const std::vector<Fields> events = read_events(log.path());
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[2].numbers.at(2), 20u);
  EXPECT_EQ(events[3].numbers.at(2), 40u);
  EXPECT_EQ(scalars_of(events[3]),
            (std::map<std::string, double>{{"step/loss", 2.0}, {"step/learning_rate", 0.25}, {"step/batch", 64}}));
}

TEST_F(TensorboardLogTest, WritesTheGradientNormOfTheSameSteps) {
  TensorboardLog log(path(""), 0, fixed_clock);
  for (int64_t step = 0; step < 40; ++step) log.add(step::StepMetrics{.step = step, .loss = 2.0, .gradient_norm = 0.5});
  std::vector<uint64_t> steps;
  for (const Fields& event : read_events(log.path())) {
    const std::map<std::string, double> scalars = scalars_of(event);
    if (!scalars.contains("step/gradient_norm")) continue;
    EXPECT_EQ(scalars.at("step/gradient_norm"), 0.5);
    steps.push_back(event.numbers.at(2));
  }
  EXPECT_EQ(steps, (std::vector<uint64_t>{20, 40}));
}

TEST_F(TensorboardLogTest, WritesWhatAnEpochMeasured) {
  TensorboardLog log(path(""), 0, fixed_clock);
  log.add(step::EpochMetrics{.step = 300,
                             .train_loss = 0.5,
                             .train_accuracy = 0.75,
                             .test_metrics = {{"accuracy", 0.5}},
                             .train_seconds = 12.5});
  std::map<std::string, double> all;
  for (const Fields& event : read_events(log.path())) all.merge(scalars_of(event));
  EXPECT_EQ(all, (std::map<std::string, double>{{"epoch/train_loss", 0.5},
                                                {"epoch/train_accuracy", 0.75},
                                                {"epoch/test_accuracy", 0.5},
                                                {"epoch/train_seconds", 12.5},
                                                {"epoch/images_per_second", 0}}));
}

/// The steps of a scalar that a reader keeps: a START drops what came before of its own step and later ones, as
/// TensorBoard's event_accumulator does.
std::vector<uint64_t> kept_steps(const std::vector<std::filesystem::path>& files, const std::string& tag) {
  std::vector<uint64_t> steps;
  for (const auto& file : files)
    for (const Fields& event : read_events(file)) {
      const uint64_t step = event.numbers.contains(2) ? event.numbers.at(2) : 0;
      if (event.bytes.contains(7)) std::erase_if(steps, [&](uint64_t known) { return known >= step; });
      if (scalars_of(event).contains(tag)) steps.push_back(step);
    }
  return steps;
}

TEST_F(TensorboardLogTest, AReaderKeepsTheStepsThatAreDoneAndThoseThatFollow) {
  TensorboardLog first(path(""), 0, fixed_clock);
  for (int64_t step = 0; step < 60; ++step) first.add(step::StepMetrics{.step = step});
  first.add(step::EpochMetrics{.step = 40});
  TensorboardLog second(path(""), 40, fixed_clock);  // goes on after a checkpoint of step 40
  for (int64_t step = 40; step < 80; ++step) second.add(step::StepMetrics{.step = step});
  EXPECT_EQ(kept_steps({first.path(), second.path()}, "step/loss"), (std::vector<uint64_t>{20, 40, 60, 80}));
  EXPECT_EQ(kept_steps({first.path(), second.path()}, "epoch/train_loss"), (std::vector<uint64_t>{40}));
}

TEST_F(TensorboardLogTest, ASecondLogOfTheSameSecondGetsAFileOfItsOwn) {
  const TensorboardLog first(path(""), 0, fixed_clock), second(path(""), 20, fixed_clock);
  EXPECT_NE(first.path(), second.path());
}

TEST_F(TensorboardLogTest, NamesTheDirectoryThatCannotBeMade) {
  write_atomically(path("file"), "");
  expect_error([&] { TensorboardLog(path("file"), 0, fixed_clock); }, ErrorKind::io, {"file"});
}

}  // namespace
}  // namespace weft::run
