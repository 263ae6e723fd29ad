#include "weft/cpu/cpu_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/base/isa.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class CpuBackendTest : public testing::Test {
 protected:
  /// The signature of the last node of a graph with these lines.
  NodeSignature last_node(const std::string& lines) {
    const Graph graph = parse_graph("graph \"g\" {\n" + lines + "\n}", registry_);
    return signature_of(graph, NodeId{static_cast<int32_t>(graph.nodes().size()) - 1});
  }
  NodeSignature convolution() {
    return last_node(R"(
      batch %x "x" : f32[2,32,8,8]
      parameter %w "w" : f32[64,32,3,3]
      %y = conv2d(%x, %w) {padding=[1,1]} : f32[2,64,8,8])");
  }

  OpRegistry registry_ = ops::make_registry();
  CpuBackend backend_{2}, reference_{2, reference_kernels()};
};

TEST_F(CpuBackendTest, ChoosesTheFirstCandidateThatServes) {
  const KernelChoice choice = backend_.choose_kernel(convolution());
  EXPECT_THAT(choice.kernel, StartsWith("onednn:"));
  // Before it comes weft's own, where the build has it.
  ASSERT_FALSE(choice.declined.empty());
  EXPECT_THAT(choice.declined.back(), HasSubstr("Winograd"));
}

TEST_F(CpuBackendTest, MakesTheKernelThatItChose) {
  const KernelChoice choice = backend_.choose_kernel(convolution());
  const auto kernel = backend_.make_kernel(convolution());
  EXPECT_EQ(kernel->name(), choice.kernel);
  EXPECT_EQ(kernel->workspace_bytes(), choice.workspace_bytes);
}

TEST_F(CpuBackendTest, PrefersItsOwnKernelsWhereNoneWasMeasuredFaster) {
  const NodeSignature node = last_node(R"(
      batch %x "x" : f32[2,16,8,8]
      %y = gelu(%x) : f32[2,16,8,8])");
  std::vector<std::string> families;
  for (const KernelCandidate& candidate : backend_.table().candidates("gelu")) families.push_back(candidate.family);
  EXPECT_THAT(families, ElementsAre("native", "onednn", "through f32", "reference"));
  EXPECT_THAT(backend_.choose_kernel(node).kernel, StartsWith("native:"));
}

TEST_F(CpuBackendTest, AveragesImagesByOneDnn) {
  if (detect_isa() != Isa::avx512)
    GTEST_SKIP() << "without AVX-512 oneDNN has no kernel for plain images of this shape";
  const NodeSignature node = last_node(R"(
      batch %x "x" : f32[2,16,8,8]
      %y = avg_pool2d(%x) {kernel=[2,2], stride=[2,2]} : f32[2,16,4,4])");
  EXPECT_EQ(backend_.table().candidates("avg_pool2d").front().family, "onednn");
  EXPECT_THAT(backend_.choose_kernel(node).kernel, StartsWith("onednn:"));
}

TEST_F(CpuBackendTest, SaysWhyBetterCandidatesDeclined) {
  const KernelChoice choice = backend_.choose_kernel(last_node(R"(
      batch %x "x" : f32[0,4]
      batch %w "w" : f32[4,4]
      %y = matmul(%x, %w) : f32[0,4])"));
  EXPECT_THAT(choice.kernel, StartsWith("reference"));
  EXPECT_THAT(choice.declined,
              ElementsAre("native: no, because the second factor is no transposed matrix",
                          "onednn: no, because an operand is empty", "through f32: no, because no operand is f16"));
}

TEST_F(CpuBackendTest, WhereAllDeclineTheErrorSaysWhy) {
  NodeSignature node = last_node(R"(
      batch %x "x" : f32[2,4,8,8]
      batch %w "w" : f32[4,4,1,1]
      %y = conv2d(%x, %w) : f32[2,4,8,8])");
  for (auto& input : node.inputs) input.dtype = DType::f64;
  node.outputs[0].dtype = DType::f64;
  try {
    backend_.choose_kernel(node);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("onednn: no, because"));
    EXPECT_THAT(error.what(), HasSubstr("reference: no, because"));
  }
}

TEST_F(CpuBackendTest, NoKernelAtAllIsAnErrorThatNamesTheNode) {
  OpDef op;
  op.name = "unheard_of";
  try {
    backend_.choose_kernel({&op, "here", {}, {}, {}});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), StartsWith("[unheard_of] 'here': there is no kernel for this op"));
  }
}

TEST_F(CpuBackendTest, OnlyReferenceKnowsNothingElse) {
  EXPECT_THAT(reference_.choose_kernel(convolution()).kernel, StartsWith("reference"));
  EXPECT_FALSE(reference_.preferred_layouts(convolution()).has_value());
  EXPECT_FALSE(reference_.supports_layouts(convolution()));
}

TEST_F(CpuBackendTest, PreferredLayoutsAreSupported) {
  NodeSignature node = convolution();
  const auto choice = backend_.preferred_layouts(node);
  ASSERT_TRUE(choice.has_value());
  for (size_t i = 0; i < 2; ++i) node.inputs[i].layout = choice->inputs[i];
  node.outputs[0].layout = choice->outputs[0];
  EXPECT_TRUE(backend_.supports_layouts(node));
}

TEST_F(CpuBackendTest, TheFirstCandidateWithAWishForLayoutsIsFollowed) {
  const Layout wanted = parse_layout("acdb", 4);
  KernelTable table = standard_kernels();
  const auto declines = [](const NodeSignature&, const KernelOptions&, std::string&) { return nullptr; };
  const auto wish = [&](const NodeSignature&, const KernelOptions&) -> std::optional<LayoutChoice> {
    return LayoutChoice{{wanted}, {wanted}};
  };
  table.add("gelu", {"own", declines, wish});
  const NodeSignature node = last_node(R"(
      batch %x "x" : f32[2,16,8,8]
      %y = gelu(%x) : f32[2,16,8,8])");
  EXPECT_FALSE(backend_.preferred_layouts(node).has_value());
  EXPECT_EQ(CpuBackend(2, table).preferred_layouts(node)->inputs[0], wanted);
}

TEST_F(CpuBackendTest, LayoutsThatOnlyPlainLoopsServeAreNotSupported) {
  NodeSignature node = convolution();
  node.inputs[0].layout = parse_layout("dcba", 4);
  EXPECT_FALSE(backend_.supports_layouts(node));
}

TEST_F(CpuBackendTest, ConvolutionsOf3x3TakeGrantedWorkspace) {
  EXPECT_TRUE(backend_.takes_granted_workspace(convolution()));
  EXPECT_FALSE(backend_.takes_granted_workspace(last_node(R"(
      batch %x "x" : f32[2,32,8,8]
      parameter %w "w" : f32[64,32,1,1]
      %y = conv2d(%x, %w) : f32[2,64,8,8])")));
  EXPECT_FALSE(backend_.takes_granted_workspace(last_node(R"(
      batch %x "x" : f32[2,32,8,8]
      %y = relu(%x) : f32[2,32,8,8])")));
}

TEST_F(CpuBackendTest, SaysByWhatItComputes) {
  const DeviceIdentity identity = backend_.identity();
  EXPECT_FALSE(identity.instructions.empty());
  EXPECT_EQ(identity.library, "onednn");
  EXPECT_THAT(identity.library_version, testing::MatchesRegex("[0-9]+\\.[0-9]+.*"));
  EXPECT_THAT(backend_.what_lacks(DType::bf16), HasSubstr("this CPU has no instructions for bf16"));
}

TEST_F(CpuBackendTest, ZeroThreadsAreAUserMistake) {
  try {
    CpuBackend backend(0);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), HasSubstr("--threads 0"));
  }
}

}  // namespace
}  // namespace weft
