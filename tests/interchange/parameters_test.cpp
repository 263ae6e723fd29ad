// Parameters from safetensors files of other programs.
#include "weft/interchange/safetensors/parameters.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>

#include "tests/support/temporary_folder.h"
#include "weft/base/error.h"
#include "weft/tensor/safetensors.h"

namespace weft {
namespace {

class Parameters : public ::testing::Test {
 protected:
  std::string error_of(const std::vector<WantedParameter>& wanted) const {
    try {
      import_parameters(path_, wanted);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
      return error.what();
    }
    return "no error";
  }
  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "parameters.safetensors";
};

TEST_F(Parameters, AreMatchedByName) {
  const std::array<float, 4> values{1, 2, 3, 4};
  write_safetensors(path_, {{{"fc.weight", Tensor::of({2, 2}, values)}, {"other", Tensor::of({4}, values)}}, {}});
  const ImportedParameters imported = import_parameters(path_, {{"fc.weight", {2, 2}}});
  EXPECT_EQ(imported.tensors.at("fc.weight").data_as<float>()[2], 3);
  ASSERT_EQ(imported.unused.size(), 1u);
  EXPECT_EQ(imported.unused[0].name, "other");
  EXPECT_EQ(imported.unused[0].shape, Shape({4}));
}

TEST_F(Parameters, OfSixteenBitsBecomeF32) {
  Tensor half(DType::f16, Shape{2}), brain(DType::bf16, Shape{2});
  half.data_as<uint16_t>()[1] = 0xC100;   // -2.5
  brain.data_as<uint16_t>()[0] = 0x4049;  // 3.140625
  write_safetensors(path_, {{{"half", half}, {"brain", brain}}, {}});
  const ImportedParameters imported = import_parameters(path_, {{"half", {2}}, {"brain", {2}}});
  EXPECT_EQ(imported.tensors.at("half").dtype(), DType::f32);
  EXPECT_EQ(imported.tensors.at("half").data_as<float>()[1], -2.5f);
  EXPECT_EQ(imported.tensors.at("brain").data_as<float>()[0], 3.140625f);
}

TEST_F(Parameters, ThatAreAbsentNameTheNearest) {
  const std::array<float, 1> value{1};
  write_safetensors(path_, {{{"layer1.weight", Tensor::of({1}, value)}}, {}});
  EXPECT_NE(error_of({{"layer2.weight", {1}}}).find("has no tensor 'layer2.weight'; did you mean 'layer1.weight'?"),
            std::string::npos);
}

TEST_F(Parameters, OfAnotherShapeSayBoth) {
  const std::array<float, 2> values{1, 2};
  write_safetensors(path_, {{{"bias", Tensor::of({2}, values)}}, {}});
  EXPECT_NE(error_of({{"bias", {3}}}).find("'bias' is (2), the model wants (3)"), std::string::npos);
}

TEST_F(Parameters, OfWholeNumbersAreRefused) {
  write_safetensors(path_, {{{"bias", Tensor(DType::i64, Shape{2})}}, {}});
  EXPECT_NE(error_of({{"bias", {2}}}).find("'bias' is i64, a parameter must be floating-point"), std::string::npos);
}

TEST_F(Parameters, UnderAPrefixAreFound) {
  const std::array<float, 2> values{1, 2};
  for (const std::string prefix : {"module.", "model.", "model.module.", "backbone."}) {
    write_safetensors(path_, {{{prefix + "conv1.weight", Tensor::of({2}, values)},
                               {prefix + "layer1.conv1.weight", Tensor::of({2}, values)},
                               {"criterion.weight", Tensor::of({2}, values)}},
                              {}});
    const ImportedParameters imported = import_parameters(path_, {{"conv1.weight", {2}}, {"layer1.conv1.weight", {2}}});
    EXPECT_EQ(imported.prefix, prefix);
    EXPECT_EQ(imported.tensors.at("layer1.conv1.weight").data_as<float>()[1], 2);
    EXPECT_TRUE(imported.unused.empty());  // the loss is no part of the model
  }
}

TEST_F(Parameters, UnderAPrefixAreFoundWithoutTheFirstOfThem) {
  const std::array<float, 2> values{1, 2};
  write_safetensors(path_,
                    {{{"module.fc1.bias", Tensor::of({2}, values)}, {"module.fc2.bias", Tensor::of({2}, values)}}, {}});
  const ImportedParameters imported =
      import_parameters(path_, {{"fc1.weight", {2, 2}}, {"fc1.bias", {2}}, {"fc2.bias", {2}}}, Match::some);
  EXPECT_EQ(imported.prefix, "module.");
  EXPECT_EQ(imported.tensors.size(), 2u);
  EXPECT_EQ(imported.missing, std::vector<std::string>{"fc1.weight"});
  EXPECT_NE(error_of({{"fc1.weight", {2, 2}}, {"fc1.bias", {2}}}).find("has no tensor 'module.fc1.weight'"),
            std::string::npos);
}

TEST_F(Parameters, OfALayerOfTheSameNameAreNotTakenForAPrefix) {
  const std::array<float, 1> value{1};
  write_safetensors(path_,
                    {{{"layer1.conv1.weight", Tensor::of({1}, value)}, {"bn1.weight", Tensor::of({1}, value)}}, {}});
  EXPECT_NE(error_of({{"conv1.weight", {1}}, {"bn1.weight", {1}}}).find("has no tensor 'conv1.weight'"),
            std::string::npos);
}

TEST_F(Parameters, CountersOfBatchesAreNoParameters) {
  const std::array<float, 1> value{1};
  write_safetensors(path_,
                    {{{"bn.weight", Tensor::of({1}, value)}, {"bn.num_batches_tracked", Tensor(DType::i64, {})}}, {}});
  EXPECT_TRUE(import_parameters(path_, {{"bn.weight", {1}}}).unused.empty());
}

TEST_F(Parameters, OfAHeadForOtherClassesAreLeftOut) {
  write_safetensors(path_, {{{"conv", Tensor(DType::f32, {4})}, {"fc", Tensor(DType::f32, {1000, 3})}}, {}});
  const ImportedParameters imported = import_parameters(path_, {{"conv", {4}}, {"fc", {10, 3}, true}});
  EXPECT_TRUE(imported.has_other_classes);
  EXPECT_EQ(imported.missing, std::vector<std::string>{"fc"});
  ASSERT_EQ(imported.left.size(), 1u);
  EXPECT_EQ(imported.left[0].shape, Shape({1000, 3}));
  EXPECT_FALSE(imported.tensors.contains("fc"));
  EXPECT_NE(error_of({{"conv", {4}}, {"fc", {10, 3}}}).find("'fc' is (1000,3), the model wants (10,3)"),
            std::string::npos);
  EXPECT_NE(error_of({{"conv", {4}}, {"fc", {10, 4}, true}}).find("'fc' is (1000,3), the model wants (10,4)"),
            std::string::npos);
}

TEST_F(Parameters, OfAHeadMayBeMissingAsAWhole) {
  write_safetensors(path_, {{{"conv", Tensor(DType::f32, {4})}}, {}});
  const ImportedParameters imported =
      import_parameters(path_, {{"conv", {4}}, {"fc.weight", {10, 3}, true}, {"fc.bias", {10}, true}});
  EXPECT_EQ(imported.missing, (std::vector<std::string>{"fc.weight", "fc.bias"}));
  EXPECT_FALSE(imported.has_other_classes);
  write_safetensors(path_, {{{"conv", Tensor(DType::f32, {4})}, {"fc.weight", Tensor(DType::f32, {10, 3})}}, {}});
  EXPECT_NE(
      error_of({{"conv", {4}}, {"fc.weight", {10, 3}, true}, {"fc.bias", {10}, true}}).find("has no tensor 'fc.bias'"),
      std::string::npos)
      << "a head that is there in part is damaged";
}

TEST_F(Parameters, MayMatchInPartOnRequest) {
  write_safetensors(
      path_,
      {{{"conv", Tensor(DType::f32, {4})}, {"deep", Tensor(DType::f32, {3, 3})}, {"extra", Tensor(DType::f32, {2})}},
       {}});
  const ImportedParameters imported =
      import_parameters(path_, {{"conv", {4}}, {"deep", {3, 5}}, {"new", {1}}}, Match::some);
  EXPECT_EQ(imported.tensors.size(), 1u);
  EXPECT_EQ(imported.missing, (std::vector<std::string>{"deep", "new"}));
  ASSERT_EQ(imported.left.size(), 1u);
  EXPECT_EQ(imported.left[0].name, "deep");
  ASSERT_EQ(imported.unused.size(), 1u);
  EXPECT_EQ(imported.unused[0].name, "extra");
}

TEST_F(Parameters, OfAnotherModelAltogetherAreRefusedInPartToo) {
  write_safetensors(path_, {{{"other", Tensor(DType::f32, {4})}}, {}});
  try {
    import_parameters(path_, {{"conv", {4}}}, Match::some);
    FAIL() << "nothing fits";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("has no tensor 'conv'"), std::string::npos);
  }
}

TEST_F(Parameters, OfTorchSaveSayHowToConvertThem) {
  std::ofstream(path_, std::ios::binary) << std::string("PK\x03\x04more", 8);
  EXPECT_NE(error_of({{"fc", {1}}}).find("was written by torch.save; convert it with"), std::string::npos);
}

}  // namespace
}  // namespace weft
