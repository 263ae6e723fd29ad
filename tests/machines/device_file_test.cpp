#include "weft/machines/device_file.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/machines/cluster_file.h"
#include "weft/machines/shipped.h"

namespace weft::machines {
namespace {

constexpr const char* kDevice = R"(
name = "a device"
memory_gigabytes = 16
memory_gigabytes_per_second = 900
launch_us = 4
[teraflops]
f32 = 15
f16 = 120
[efficiency.convolution]
best = 0.6
half_gigaflop = 0.5
[efficiency.matrix_product]
best = 0.75
[efficiency.attention]
best = 0.4
[efficiency.memory]
best = 0.8
half_megabytes = 0.5
[watts]
idle = 40
peak = 300
[throttling]
seconds = [0, 60]
rate = [1, 0.9]
)";

std::string error_of(std::string text, const std::string& from, const std::string& to) {
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  try {
    parse_device(text, "dev.toml");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(DeviceFile, IsReadInBaseUnits) {
  const DeviceFile device = parse_device(kDevice, "dev.toml");
  EXPECT_EQ(device.name, "a device");
  EXPECT_DOUBLE_EQ(device.peak(Arithmetic::f16), 120e12);
  EXPECT_DOUBLE_EQ(device.bytes_per_second, 900e9);
  EXPECT_DOUBLE_EQ(device.launch_seconds, 4e-6);
  EXPECT_DOUBLE_EQ(device.of(WorkClass::convolution).half_size, 0.5e9);
  EXPECT_DOUBLE_EQ(device.of(WorkClass::memory).half_size, 0.5e6);
  EXPECT_DOUBLE_EQ(device.watts(0.5), 170);
}

TEST(DeviceFile, PrintsWhatParsesToTheSame) {
  const DeviceFile device = parse_device(kDevice, "dev.toml");
  EXPECT_EQ(parse_device(print_device(device), "again"), device);
}

TEST(DeviceFile, ComputesWhatItHasNoUnitsForInTheNextWider) {
  const DeviceFile device = parse_device(kDevice, "dev.toml");
  EXPECT_DOUBLE_EQ(device.peak(Arithmetic::bf16), 120e12);
  EXPECT_DOUBLE_EQ(device.peak(Arithmetic::f8), 120e12);
  EXPECT_DOUBLE_EQ(device.peak(Arithmetic::tf32), 15e12);
}

TEST(DeviceFile, ThrottlesAfterItsTime) {
  const DeviceFile device = parse_device(kDevice, "dev.toml");
  EXPECT_DOUBLE_EQ(device.rate_share(59), 1);
  EXPECT_DOUBLE_EQ(device.rate_share(60), 0.9);
  EXPECT_DOUBLE_EQ(device.throttled_seconds(50), 50);
  EXPECT_DOUBLE_EQ(device.throttled_seconds(150), 60 + 90 / 0.9);
}

TEST(DeviceFile, NamesTheKeyThatIsMissingAndWhereToFindIt) {
  EXPECT_EQ(
      error_of(kDevice, "f32 = 15\n", ""),
      "'dev.toml': teraflops.f32 is missing; take it from the data sheet, or begin with a file that comes with weft");
  EXPECT_EQ(error_of(kDevice, "memory_gigabytes = 16\n", "").substr(0, 42),
            "'dev.toml': memory_gigabytes is missing; t");
  EXPECT_NE(error_of(kDevice, "[efficiency.memory]\nbest = 0.8\nhalf_megabytes = 0.5\n", "")
                .find("efficiency.memory.best is missing"),
            std::string::npos);
}

TEST(DeviceFile, RefusesWhatContradictsItself) {
  EXPECT_NE(error_of(kDevice, "f16 = 120", "f16 = 1.2").find("teraflops.f16 contradicts f32"), std::string::npos);
  EXPECT_NE(error_of(kDevice, "idle = 40", "idle = 400").find("watts.idle contradicts watts.peak"), std::string::npos);
  EXPECT_NE(error_of(kDevice, "best = 0.6", "best = 60").find("is a share of the peak, at most 1"), std::string::npos);
  EXPECT_NE(error_of(kDevice, "rate = [1, 0.9]", "rate = [1]").find("has 1 numbers where throttling.seconds has 2"),
            std::string::npos);
}

TEST(DeviceFile, ThrottlingWithoutRatesIsNamedWithoutALine) {
  EXPECT_EQ(error_of(kDevice, "rate = [1, 0.9]\n", ""),
            "'dev.toml': throttling.rate has 0 numbers where throttling.seconds has 2; give a rate for each");
}

TEST(DeviceFile, OffersTheNearestKey) {
  EXPECT_NE(error_of(kDevice, "launch_us", "lanch_us").find("did you mean 'launch_us'?"), std::string::npos);
  EXPECT_NE(error_of(kDevice, "f16 = 120", "fp16 = 120").find("there is no key 'teraflops.fp16'; did you mean 'f16'?"),
            std::string::npos);
}

TEST(ShippedFiles, AllParse) {
  EXPECT_GE(shipped_devices().size(), 15u);
  EXPECT_GE(shipped_clusters().size(), 20u);
  for (const ShippedFile& file : shipped_devices()) EXPECT_NO_THROW(read_device(file.name)) << file.name;
  for (const ShippedFile& file : shipped_clusters()) {
    SCOPED_TRACE(file.name);
    const ClusterFile cluster = read_cluster(file.name);
    EXPECT_TRUE(cluster.device.has_value());
    EXPECT_GT(cluster.failures.per_device_hour, 0);
  }
}

TEST(ShippedFiles, EachNamesItsSource) {
  for (const auto* files : {&shipped_devices(), &shipped_clusters()})
    for (const ShippedFile& file : *files) EXPECT_EQ(file.text.substr(0, 2), "# ") << file.name;
}

TEST(ShippedFiles, PricesHaveADate) {
  int priced = 0;
  for (const ShippedFile& file : shipped_clusters()) {
    const Price price = read_cluster(file.name).price;
    if (price.per_host_hour <= 0) continue;
    ++priced;
    EXPECT_FALSE(price.date.empty()) << file.name;
  }
  EXPECT_GE(priced, 8);
}

}  // namespace
}  // namespace weft::machines
