#include "weft/machines/cluster_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/files.h"

namespace weft::machines {
namespace {

constexpr const char* kCluster = R"(
[machine]
device = "v100_sxm2_16gb"
hosts = 16
devices_per_host = 8
adapters_per_host = 4
[in_host]
latency_us = 6
megabytes_per_second = 120000
[between_hosts]
latency_us = 5
message_us = 1
megabytes_per_second = 48000
[[levels]]
name = "rack"
hosts = 4
uplink_megabytes_per_second = 96000
[price]
per_host_hour = 24.48
spot_per_host_hour = 7.3
date = "2018"
[failures]
per_device_hour = 2e-5
)";

std::string error_of(const std::string& from, const std::string& to) {
  std::string text = kCluster;
  text.replace(text.find(from), from.size(), to);
  try {
    parse_cluster(text, "c.toml");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ClusterFile, IsReadInBaseUnits) {
  const ClusterFile cluster = parse_cluster(kCluster, "dir/c.toml");
  EXPECT_EQ(cluster.name, "c");
  EXPECT_EQ(cluster.ranks(), 128);
  EXPECT_EQ(cluster.device->name, "NVIDIA Tesla V100 SXM2 16 GB");
  EXPECT_DOUBLE_EQ(cluster.between_hosts.bytes_per_second, 48e9);
  EXPECT_DOUBLE_EQ(cluster.levels.at(0).uplink_bytes_per_second, 96e9);
  EXPECT_DOUBLE_EQ(cluster.price.per_host_hour, 24.48);
  EXPECT_DOUBLE_EQ(cluster.failures.per_device_hour, 2e-5);
}

TEST(ClusterFile, NamesTheRateThatIsMissing) {
  EXPECT_EQ(
      error_of("latency_us = 5\nmessage_us = 1\nmegabytes_per_second = 48000", "latency_us = 5"),
      "'c.toml': between_hosts.megabytes_per_second is missing; measure it with `weft cluster probe`, or write what "
      "the link's maker says");
  EXPECT_NE(error_of("hosts = 16\n", "").find("machine.hosts is missing; write how many hosts can be had"),
            std::string::npos);
}

TEST(ClusterFile, RefusesWhatContradictsItself) {
  EXPECT_NE(error_of("uplink_megabytes_per_second = 96000", "uplink_megabytes_per_second = 960000")
                .find("is more than its hosts can send"),
            std::string::npos);
  EXPECT_NE(error_of("hosts = 4\n", "hosts = 40\n").find("of 16 hosts in all"), std::string::npos);
  EXPECT_NE(error_of("spot_per_host_hour = 7.3", "spot_per_host_hour = 73").find("contradicts per_host_hour"),
            std::string::npos);
  EXPECT_NE(
      error_of("adapters_per_host = 4", "adapters_per_host = 4\nspeeds = [1, 0.5]").find("2 numbers for 128 ranks"),
      std::string::npos);
}

TEST(ClusterFile, RefusesStragglersThatCannotBe) {
  const auto error = [](const std::string& line) {
    return error_of("[failures]", "[stragglers]\n" + line + "\n[failures]");
  };
  EXPECT_NE(error("jitter = 1000").find("stragglers.jitter is above 1; write the deviation"), std::string::npos);
  for (const char* line : {"slow_factor = 1e300", "slow_factor = 0.5"})
    EXPECT_NE(error(line).find("stragglers.slow_factor has to be in [1, 100]; write how much longer"),
              std::string::npos)
        << line;
}

TEST(ClusterFile, RefusesMoreRanksThanCanBeCounted) {
  EXPECT_NE(error_of("hosts = 16", "hosts = 9000000").find("machine.hosts makes 72000000 ranks, more than 10000000"),
            std::string::npos);
}

TEST(ClusterFile, HostsOfWhichOneNamesNoRanksAreNamedWithoutALine) {
  EXPECT_EQ(error_of("[machine]\n", "[[hosts]]\nranks = 2\n[[hosts]]\n[machine]\n"),
            "'c.toml': hosts.ranks differs between hosts; simulate the hosts that are alike");
}

TEST(ClusterFile, OffersTheNearestNames) {
  EXPECT_NE(error_of("v100_sxm2_16gb", "v100_sxm2_16g").find("did you mean 'v100_sxm2_16gb'?"), std::string::npos);
  EXPECT_NE(error_of("[failures]", "[failure]").find("did you mean 'failures'?"), std::string::npos);
  try {
    read_cluster("p3_16xlarg");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'p3_16xlarge'?"), std::string::npos);
  }
}

TEST(ClusterFile, TakesWhatClusterProbeWrites) {
  const ClusterFile cluster = parse_cluster(R"(
[between_hosts]
latency_us = 30
message_us = 3
megabytes_per_second = 1200
[in_host]
latency_us = 1
message_us = 0.3
megabytes_per_second = 10000
[memory]
shared_megabytes_per_second = 10000
summed_megabytes_per_second = 8000
[[hosts]]
name = "a"
ranks = 2
[[hosts]]
name = "b"
ranks = 2
)",
                                            "cluster.toml");
  EXPECT_FALSE(cluster.device.has_value());
  EXPECT_EQ(cluster.hosts, 2);
  EXPECT_EQ(cluster.devices_per_host, 2);
  EXPECT_DOUBLE_EQ(cluster.summed_bytes_per_second, 8e9);
}

TEST(ClusterFile, FindsADeviceBesideIt) {
  const std::filesystem::path directory = std::filesystem::path(testing::TempDir()) / "weft_machines";
  make_directories(directory);
  write_atomically(directory / "mine.toml",
                   "memory_gigabytes = 1\nmemory_gigabytes_per_second = 10\nlaunch_us = 1\n[teraflops]\nf32 = 1\n"
                   "[efficiency]\nconvolution = {best = 0.5}\nmatrix_product = {best = 0.5}\nattention = {best = 0.5}\n"
                   "memory = {best = 0.5}\n");
  write_atomically(directory / "c.toml", "[machine]\ndevice = \"mine\"\nhosts = 1\n");
  EXPECT_DOUBLE_EQ(read_cluster((directory / "c.toml").string()).device->memory_bytes, 1e9);
  EXPECT_EQ(read_clusters(directory.string()).size(), 1u);
}

}  // namespace
}  // namespace weft::machines
