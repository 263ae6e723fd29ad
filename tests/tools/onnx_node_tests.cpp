// For tools/onnx_node_tests.py: runs ONNX's own tests. Reads a test per line of standard input (folder, rtol, atol,
// "values" or "shapes", with tabs between them) and answers with a line of JSON; the script says what is in a folder.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/engine/onnx_session.h"
#include "weft/library/library.h"
#include "weft/onnx/file/model_file.h"
#include "weft/tensor/element.h"

namespace {

using weft::onnx::HostValue;
using weft::onnx::ValueInfo;

struct Test {
  std::filesystem::path folder;
  double rtol = 1e-3, atol = 1e-7;
  bool compares_values = true;
};

Test parse_test(const std::string& line) {
  std::istringstream stream(line);
  std::string folder, rtol, atol, what;
  std::getline(stream, folder, '\t');
  std::getline(stream, rtol, '\t');
  std::getline(stream, atol, '\t');
  std::getline(stream, what, '\t');
  Test test{folder};
  if (!rtol.empty()) test.rtol = std::strtod(rtol.c_str(), nullptr);
  if (!atol.empty()) test.atol = std::strtod(atol.c_str(), nullptr);
  test.compares_values = what != "shapes";
  return test;
}

HostValue read(const std::filesystem::path& path, const ValueInfo& info) {
  return weft::onnx::read_value(path, info.kind);
}

/// Empty where the two are the same within the tolerance.
std::string difference(const HostValue& got, const HostValue& want, const Test& test) {
  if (const auto* sequence = want.sequence()) {
    if (got.sequence() == nullptr || got.sequence()->size() != sequence->size())
      return "got " + describe(got) + ", not " + describe(want);
    for (size_t index = 0; index < sequence->size(); ++index)
      if (auto text = difference((*got.sequence())[index], (*sequence)[index], test); !text.empty()) return text;
    return "";
  }
  if (describe(got) != describe(want)) return "got " + describe(got) + ", not " + describe(want);
  if (!test.compares_values) return "";
  if (const auto* strings = want.strings()) return got.strings()->values == strings->values ? "" : "other texts";
  const weft::Tensor* expected = want.tensor();
  if (expected == nullptr) return "";
  for (int64_t index = 0; index < expected->elements(); ++index) {
    const double a = weft::load_element(expected->dtype(), got.tensor()->data(), index);
    const double b = weft::load_element(expected->dtype(), expected->data(), index);
    // A bf16 has 8 bits: a difference in the last one is 2^-7.
    const double rtol = expected->dtype() == weft::DType::bf16 ? std::max(test.rtol, 0x1p-6) : test.rtol;
    const bool same = a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= test.atol + rtol * std::abs(b);
    if (!same) return "element " + std::to_string(index) + " is " + std::to_string(a) + ", not " + std::to_string(b);
  }
  return "";
}

/// The operator that a message begins with: "[Conv 'stem'] ...".
std::string operator_in(const std::string& message) {
  const size_t open = message.find('['), end = message.find_first_of(" ]", open == std::string::npos ? 0 : open);
  return open == std::string::npos || end == std::string::npos ? "" : message.substr(open + 1, end - open - 1);
}

nlohmann::json run(const Test& test, const weft::Library& library, const weft::Device& device) {
  nlohmann::json result{{"test", test.folder.filename().string()}, {"status", "passed"}, {"message", ""}, {"op", ""}};
  try {
    weft::engine::OnnxSession session(weft::onnx::read_model(test.folder / "model.onnx"), library.ops, device);
    const auto infos = session.inputs();
    const auto& outputs = session.model().graph.outputs;
    for (int set = 0; std::filesystem::exists(test.folder / ("test_data_set_" + std::to_string(set))); ++set) {
      const auto folder = test.folder / ("test_data_set_" + std::to_string(set));
      std::map<std::string, HostValue> inputs;
      for (size_t index = 0; index < infos.size(); ++index)
        if (const auto path = folder / ("input_" + std::to_string(index) + ".pb"); std::filesystem::exists(path))
          inputs[infos[index].name] = read(path, infos[index]);
      auto got = session.run(inputs);
      for (size_t index = 0; index < outputs.size(); ++index) {
        const auto want = read(folder / ("output_" + std::to_string(index) + ".pb"), outputs[index]);
        const std::string text = difference(got.at(outputs[index].name), want, test);
        if (text.empty()) continue;
        result["status"] = "wrong";
        result["message"] = "'" + outputs[index].name + "': " + text;
      }
    }
  } catch (const weft::Error& error) {
    result["status"] = "refused";
    result["message"] = error.what();
    result["op"] = operator_in(error.what());
  }
  return result;
}

}  // namespace

int main() {
  const weft::Library library = weft::standard_library();
  const auto device = library.device.make({.threads = 2, .kernels = library.kernels});
  for (std::string line; std::getline(std::cin, line);)
    std::cout << run(parse_test(line), library, *device).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
              << std::endl;
  return 0;
}
