// What a test looks up in a run directory.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/cli/program.h"

namespace weft::cli_tests {

class RunTest : public ProgramTest {
 protected:
  nlohmann::json json_of(const std::string& name) const { return nlohmann::json::parse(read_all(path(name))); }
  std::string last_checkpoint(const std::string& run) const {
    std::string last;
    for (const auto& entry : fs::directory_iterator(path(run) / "checkpoints")) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("step-") && name > last) last = name;
    }
    return last;
  }
  /// Weights and optimiser state of the last checkpoint, as bytes.
  std::string last_state(const std::string& run) const {
    const fs::path checkpoint = path(run) / "checkpoints" / last_checkpoint(run);
    return read_all(checkpoint / "model.safetensors") + read_all(checkpoint / "optimizer.safetensors");
  }
  /// How often each record (kind, step) stands in the metrics.
  std::map<std::pair<std::string, int64_t>, int> records(const std::string& run) const {
    std::istringstream lines(read_all(path(run) / "metrics.jsonl"));
    std::map<std::pair<std::string, int64_t>, int> seen;
    for (std::string line; std::getline(lines, line);) {
      const auto record = nlohmann::json::parse(line);
      ++seen[std::make_pair(record["kind"].get<std::string>(), record["step"].get<int64_t>())];
    }
    return seen;
  }
};

}  // namespace weft::cli_tests
