#include "weft/device/op_times_file.h"

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/device/machine_file.h"

namespace weft {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr int kOpsFormat = 1;

json json_of(const ArithmeticRate& rate) { return {rate.flops_per_second, rate.measured_by}; }
ArithmeticRate arithmetic_of(const json& row) { return {row.at(0).get<double>(), row.at(1).get<std::string>()}; }

/// What is of all rows.
json head_of(const OpTimes& times) {
  json head = {{"overhead", {times.overhead.seconds_per_node, times.overhead.steps}}, {"ranks", times.ranks}};
  if (!times.rates()) return head;
  const MachineRates& rates = *times.rates();
  json memory = json::array();
  for (const MemoryRate& rate : rates.memory)
    memory.push_back({rate.level, rate.capacity_bytes, rate.bytes_per_second});
  head["rates"] = {{"threads", rates.threads},
                   {"f32", json_of(rates.f32)},
                   {"bf16", json_of(rates.bf16)},
                   {"memory", memory},
                   {"call_seconds", rates.call_seconds}};
  return head;
}

void read_head(const json& head, OpTimes& times) {
  times.overhead = {head.at("overhead").at(0).get<double>(), head.at("overhead").at(1).get<int64_t>()};
  times.ranks = head.value("ranks", int64_t{1});
  if (!head.contains("rates")) return;
  const json& row = head.at("rates");
  MachineRates rates;
  rates.threads = row.at("threads").get<int>();
  rates.f32 = arithmetic_of(row.at("f32"));
  rates.bf16 = arithmetic_of(row.at("bf16"));
  for (const json& level : row.at("memory"))
    rates.memory.push_back({level.at(0).get<std::string>(), level.at(1).get<int64_t>(), level.at(2).get<double>()});
  rates.call_seconds = row.at("call_seconds").get<double>();
  times.set_rates(std::move(rates));
}

json row_of(const std::string& key, const OpTime& time) {
  const OpWork& work = time.work;
  return {{"node", key.substr(key.find('\n') + 1)},
          {"kernel", work.kernel},
          {"op", work.op},
          {"family", work.family},
          {"options", work.options},
          {"narrow", work.narrow},
          {"flops", work.flops},
          {"bytes", work.bytes},
          {"sides", work.sides},
          {"seconds", time.seconds},
          {"spread", time.spread},
          {"of", time.of}};
}

json row_of(const SharedExchanges::Key& exchange, double seconds) {
  const auto& [op, ranks, bytes] = exchange;
  return {{"exchange", op}, {"ranks", ranks}, {"bytes", bytes}, {"seconds", seconds}};
}

SharedExchanges::Key exchange_of(const json& row) {
  return {row.at("exchange").get<std::string>(), row.at("ranks").get<int>(), row.at("bytes").get<int64_t>()};
}

OpTime time_of(const json& row) {
  OpTime time;
  time.work = {.op = row.at("op").get<std::string>(),
               .kernel = row.at("kernel").get<std::string>(),
               .family = row.at("family").get<std::string>(),
               .options = row.at("options").get<std::string>(),
               .narrow = row.at("narrow").get<bool>(),
               .flops = row.at("flops").get<double>(),
               .bytes = row.at("bytes").get<double>(),
               .sides = row.at("sides").get<std::array<double, 3>>()};
  time.seconds = row.at("seconds").get<double>();
  time.spread = row.at("spread").get<double>();
  time.of = row.at("of").get<std::string>();
  return time;
}

}  // namespace

std::string print_op_times(const OpTimes& times, const std::string& machine) {
  std::string lines = head_of(times).dump() + "\n";
  for (const auto& [key, time] : times.all()) lines += row_of(key, time).dump() + "\n";
  for (const auto& [exchange, seconds] : times.exchanges.all()) lines += row_of(exchange, seconds).dump() + "\n";
  return print_machine_file(kOpsFormat, machine, times.size() + times.exchanges.all().size(), lines);
}

OpTimes parse_op_times(std::string_view text, const std::string& machine) {
  const std::string_view lines = rows_of_machine_file(text, kOpsFormat, machine);
  try {
    OpTimes times;
    for (size_t begin = 0; begin < lines.size();) {
      const size_t end = std::min(lines.find('\n', begin), lines.size());
      const json row = json::parse(lines.substr(begin, end - begin));
      begin = end + 1;
      if (row.contains("node"))
        times.add(row.at("node").get<std::string>(), time_of(row));
      else if (row.contains("exchange"))
        times.exchanges.add(exchange_of(row), row.at("seconds").get<double>());
      else
        read_head(row, times);
    }
    return times;
  } catch (const json::exception&) {
    fail(ErrorKind::data, "it is damaged: it does not hold times of ops");
  }
}

OpTimesFile::OpTimesFile(const fs::path& directory, std::string machine, int64_t ranks)
    : machine_(std::move(machine)),
      file_(directory / name_of_machine_file(ranks > 1 ? fmt::format("ops-{}-ranks", ranks) : "ops", machine_)) {}

OpTimes OpTimesFile::read(const Note& note) const {
  std::error_code code;
  if (!fs::exists(file_, code)) return {};
  try {
    return parse_op_times(read_text(file_), machine_);
  } catch (const Error& error) {
    if (note)
      note(fmt::format("the times of ops in '{}' are not used: {}; measure them with `weft rates --ops`",
                       file_.string(), error.what()));
    return {};
  }
}

void OpTimesFile::add(const OpTimes& times) const {
  make_directories(file_.parent_path());
  const std::shared_ptr<void> lock = lock_machine_files(file_.parent_path());
  OpTimes all = read({});
  all.add(times);
  write_atomically(file_, print_op_times(all, machine_));
}

OpTimes read_op_times(const fs::path& file, const std::string& machine) {
  const std::string text = read_text(file);
  try {
    return parse_op_times(text, machine);
  } catch (const Error& error) {
    fail(error.kind(),
         "'{}' holds no times of ops of this machine: {}; this is {}; measure them with `weft rates --ops`",
         file.string(), error.what(), machine);
  }
}

}  // namespace weft
