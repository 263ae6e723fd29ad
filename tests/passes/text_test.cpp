// Runs the cases in tests/passes/*.weft: a graph, the passes to run on it, and the graph that must come out.
//
//   === case a relu after a batch norm
//   graph "g" { ... }
//   === run fuse_batch_norm
//   === expect                (or: === unchanged)
//   graph "g" { ... }
//
// Before the passes may stand precision=TYPE, and PATTERN=TYPE for exceptions; limit=BYTES of the arena, and
// disk=BYTES of a file that takes so many in a second; ranks=N, with latency=SECONDS and link=BYTES per second, and
// defers=yes where the next run may do what is left; bucket=BYTES that go together; batches=N, whose gradients ranks
// add before they exchange them.
#include "weft/graph/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "tests/passes/fake_backend.h"
#include "weft/base/files.h"
#include "weft/compile/compile.h"
#include "weft/graph/verify.h"
#include "weft/ops/all.h"
#include "weft/passes/pipeline.h"

namespace weft {
namespace {

struct TextCase {
  std::string file, title, before, after;
  std::vector<std::string> passes;
  CompileOptions options = {};
};

void PrintTo(const TextCase& text_case, std::ostream* stream) { *stream << text_case.file << ": " << text_case.title; }

void add_word(TextCase& text_case, const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos) return text_case.passes.push_back(word);
  const std::string name = word.substr(0, equals), value = word.substr(equals + 1);
  if (name == "limit")
    text_case.options.arena_limit_bytes = std::stoll(value);
  else if (name == "disk")
    text_case.options.offload_bytes_per_second = std::stod(value);
  else if (name == "ranks")
    text_case.options.ranks.count = std::stoi(value);
  else if (name == "batches")
    text_case.options.ranks.batches = std::stoll(value);
  else if (name == "bucket")
    text_case.options.ranks.bucket_bytes = std::stoll(value);
  else if (name == "defers")
    text_case.options.ranks.may_defer = value == "yes";
  else if (name == "latency")
    text_case.options.ranks.latency_seconds = std::stod(value);
  else if (name == "link")
    text_case.options.ranks.bytes_per_second = std::stod(value);
  else if (name == "precision")
    text_case.options.precision.dtype = parse_dtype(value).value();
  else
    text_case.options.precision.overrides.push_back({name, parse_dtype(value).value()});
}

std::vector<TextCase> read_cases(const std::filesystem::path& path) {
  std::vector<TextCase> cases;
  std::istringstream text(read_text(path));
  std::string* target = nullptr;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string marker, command;
    if (!(words >> marker) || marker != "===") {
      if (target != nullptr) *target += line + "\n";
      continue;
    }
    words >> command;
    if (command == "case") {
      cases.push_back({path.stem().string(), line.substr(line.find("case") + 5), "", "", {}});
      target = &cases.back().before;
    } else if (command == "run") {
      for (std::string word; words >> word;) add_word(cases.back(), word);
      target = nullptr;
    } else if (command == "expect") {
      target = &cases.back().after;
    } else if (command == "unchanged") {
      cases.back().after = cases.back().before;
    } else {
      throw std::runtime_error(path.string() + ": no command '" + command + "'");
    }
  }
  return cases;
}

std::vector<TextCase> all_cases() {
  std::vector<TextCase> cases;
  for (const auto& entry : std::filesystem::directory_iterator(WEFT_SOURCE_DIR "/tests/passes"))
    if (entry.path().extension() == ".weft")
      for (TextCase& text_case : read_cases(entry.path())) cases.push_back(std::move(text_case));
  std::stable_sort(cases.begin(), cases.end(), [](const auto& a, const auto& b) { return a.file < b.file; });
  return cases;
}

class PassText : public testing::TestWithParam<TextCase> {};

TEST_P(PassText, GivesTheExpectedGraph) {
  const OpRegistry registry = ops::make_registry();
  const test::FakeBackend backend;
  Graph graph = parse_graph(GetParam().before, registry);
  verify(graph, "parsing");
  ASSERT_FALSE(GetParam().passes.empty());
  for (const std::string& name : GetParam().passes) {
    const auto& table = passes::pipeline();
    const auto pass = std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.name == name; });
    ASSERT_NE(pass, table.end()) << name;
    const CompileOptions& options = GetParam().options;
    graph = pass->run(graph, pass_context(backend, options));
    verify(graph, name);
  }
  EXPECT_EQ(print_graph(graph), print_graph(parse_graph(GetParam().after, registry)));
}

std::string test_name(const testing::TestParamInfo<TextCase>& info) {
  std::string name = info.param.file + "_" + info.param.title;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, PassText, testing::ValuesIn(all_cases()), test_name);

}  // namespace
}  // namespace weft
