// What the checked host is for: whoever touches the device's memory behind the runtime's back is caught and named.
#include "tests/support/checked_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/compile/compile.h"
#include "weft/device/function_kernel.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"
#include "weft/runtime/executor.h"
#include "weft/runtime/interpret.h"

namespace weft {
namespace {

using testing::HasSubstr;

/// s (x w)
constexpr const char* kGraph = R"(graph "g" {
  batch %x "x" : f32[3,5]
  parameter %w "w" : f32[5,4]
  scalar %s "s" : f32[]
  %y = matmul(%x, %w) : f32[3,4]
  %scaled = multiply(%y, %s) : f32[3,4]
  output "scaled" %scaled
})";

/// In memory that only kernels and copies may touch, a constant is carried there once and read from there.
TEST(CheckedHostConstants, AreCarriedToTheDevice) {
  const OpRegistry registry = ops::make_registry();
  const Graph graph = parse_graph(R"(graph "g" {
  batch %x "x" : f32[3,2]
  %w = constant_tensor() {data=<f32[2,3] 1,2,3,4,5,6>} : f32[2,3]
  %flat = reshape(%w) {shape=[6]} : f32[6]
  %shape = constant_tensor() {data=<i4[3] 1,-2,3>} : i4[3]
  %wide = cast(%shape) {dtype="i64"} : i64[3]
  %y = matmul(%x, %w) : f32[3,3]
  output "y" %y
  output "flat" %flat
  output "wide" %wide
})",
                                  registry);
  const CheckedHost device(1);
  Tensor x(DType::f32, {3, 2});
  for (int i = 0; i < 6; ++i) x.data_as<float>()[i] = static_cast<float>(i);
  const auto expected = evaluate_graph(graph, {{"x", x}}, CpuBackend(1));
  for (const std::vector<std::string>& disabled :
       {std::vector<std::string>{}, std::vector<std::string>{"fold_tensors", "fold_casts"}}) {
    CompileOptions options;
    options.passes.disabled = disabled;
    const CompiledStep step = compile(graph, device, options);
    Executor executor(step.graph, step.plan, device);
    executor.bind_batch("x", x.data());
    for (int run = 0; run < 2; ++run) executor.run();
    for (const auto& [name, tensor] : expected) {
      const Tensor given = executor.output(name);
      EXPECT_EQ(std::memcmp(given.data(), tensor.data(), static_cast<size_t>(tensor.bytes())), 0) << name;
    }
  }
}

class CheckedHostTest : public testing::Test {
 protected:
  CheckedHostTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  /// Runs the graph with this in the place of the kernel of matmul.
  void run(const KernelBody& body) {
    KernelTable table = standard_kernels();
    table.add_first("matmul",
                    {"own", function_kernel("own", [&](const NodeSignature&, const KernelOptions&) { return body; })});
    const CheckedHost device(1, table);
    const CompiledStep step = compile(graph_, device, {});
    Executor executor(step.graph, step.plan, device);
    State state = make_state();
    executor.bind_state(state);
    const Tensor x(DType::f32, {3, 5});
    executor.bind_batch("x", x.data());
    executor.set_scalar("s", 2);
    executor.run();
  }
  std::string error_of(const KernelBody& body) {
    try {
      run(body);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  static State make_state() {
    State state;
    state.set("w", Tensor(DType::f32, {5, 4}));
    return state;
  }
  static KernelBody writes(int64_t index) {
    return [index](const KernelArguments& call) {
      std::fill(call.output(0), call.output(0) + 12, 0.0f);
      const_cast<volatile float*>(call.output(0))[index] = 1;
    };
  }

  const OpRegistry registry_ = ops::make_registry();
  const Graph graph_ = parse_graph(kGraph, registry_);
};

TEST_F(CheckedHostTest, WellBehavedKernelsRun) { EXPECT_EQ(error_of(writes(0)), "no error"); }

TEST_F(CheckedHostTest, NamesWhoWritesBehindItsOutput) {
  EXPECT_THAT(error_of(writes(12)), HasSubstr("[matmul] 'y' wrote 1 bytes behind output 0"));
}
TEST_F(CheckedHostTest, NamesWhoWritesBeforeItsOutput) {
  EXPECT_THAT(error_of(writes(-1)), HasSubstr("[matmul] 'y' wrote 4 bytes before output 0"));
}
TEST_F(CheckedHostTest, NamesWhoWritesBehindThePage) {
  EXPECT_DEATH(run(writes(16)), "checked host: \\[matmul\\] 'y' touched .*the arena");
}
TEST_F(CheckedHostTest, NamesWhoWritesToAnInput) {
  const KernelBody body = [](const KernelArguments& call) { const_cast<float*>(call.input(1))[0] = 1; };
  EXPECT_DEATH(run(body), "\\[matmul\\] 'y' touched state 'w'");
  const KernelBody other = [](const KernelArguments& call) { const_cast<float*>(call.input(0))[0] = 1; };
  EXPECT_DEATH(run(other), "\\[matmul\\] 'y' touched 'x.on_device' in the arena");
}

TEST_F(CheckedHostTest, PlanningNamesTheReaderOfACopyLeftOut) {
  try {
    CompileOptions options;
    options.passes.disabled = {"copy_between_spaces"};
    compile(graph_, CheckedHost(1), options);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "[matmul] 'y' reads 'x', which lies in the host's memory; a copy_to_device brings it to the other");
  }
}
TEST_F(CheckedHostTest, KernelsRefuseTheHostsMemory) {
  const CheckedHost device(1);
  const NodeSignature node = signature_of(graph_, {0});
  const auto kernel = device.make_kernel(node);
  try {
    run_kernel(*kernel, node, {Tensor(DType::f32, {3, 5}), Tensor(DType::f32, {5, 4})});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("input 0 of [matmul] 'y' lies in the host's memory: a copy was left out"));
  }
}

TEST_F(CheckedHostTest, StatesAreReadThroughTheState) {
  const CheckedHost device(1);
  State state = make_state();
  state.get("w").data_as<float>()[3] = 7;
  const std::byte* const address = state.require("w", {DType::f32, {5, 4}, {}}, device.memory());
  EXPECT_EQ(state.plain("w").data_as<float>()[3], 7);
  float value = 8;
  state.write("w", 12, std::as_bytes(std::span(&value, 1)));
  state.read("w", 12, std::as_writable_bytes(std::span(&value, 1)));
  EXPECT_EQ(value, 8);
  EXPECT_THROW(state.get("w"), Error);
  EXPECT_DEATH(static_cast<void>(*const_cast<const volatile std::byte*>(address)), "host code touched state 'w'");
  // And back to the host's memory, where a plan of the CPU wants it.
  EXPECT_EQ(reinterpret_cast<float*>(state.require("w", {DType::f32, {5, 4}, {}}, host_memory()))[3], 8);
  EXPECT_EQ(state.get("w").data_as<float>()[3], 8);
}

TEST_F(CheckedHostTest, NodesRunAloneInItsMemory) {
  const CheckedHost device(1);
  const std::vector<float> ones(15, 1), twos(20, 2);
  const auto outputs =
      evaluate_node(signature_of(graph_, {0}), {Tensor::of({3, 5}, ones), Tensor::of({5, 4}, twos)}, device);
  EXPECT_EQ(outputs[0].data_as<float>()[11], 10);
}

TEST_F(CheckedHostTest, CopiesAreNodesOfThePlan) {
  const CompiledStep step = compile(graph_, CheckedHost(1), {});
  std::vector<std::string> copies;
  for (const PlannedNode& planned : step.plan.steps)
    if (planned.kernel == "copy") copies.push_back(step.graph.node_name(planned.node));
  EXPECT_THAT(copies, testing::UnorderedElementsAre("x.on_device", "s.on_device", "scaled.on_host"));
  for (size_t index = 0; index < step.graph.values().size(); ++index) {
    const std::string& name = step.graph.values()[index].name;
    const bool on_host = name == "x" || name == "s" || name == "scaled.on_host";
    EXPECT_EQ(step.plan.placements[index].space, on_host ? Space::host : Space::device) << name;
  }
}

}  // namespace
}  // namespace weft
