// weft cluster, under mpirun and without.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace weft::cli_tests {
namespace {

class ClusterCommand : public ProgramTest {
 protected:
  /// On two ranks; standard output to the file `out`.
  int on_two_ranks(const std::string& arguments) const {
    const std::string command =
        "cd " + directory_.string() +
        " && ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=report_bugs=0 OMPI_ALLOW_RUN_AS_ROOT=1 "
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
        "OMPI_MCA_plm_rsh_agent=/bin/false timeout 100 mpirun --oversubscribe -n 2 " WEFT_PROGRAM " cluster " +
        arguments + " >out 2>err";
    return std::system(command.c_str());
  }
};

TEST_F(ClusterCommand, WantsALauncher) {
  const Outcome outcome = weft({"cluster", "probe"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("mpirun -n 2 weft cluster probe"), std::string::npos) << outcome.err;
}

TEST_F(ClusterCommand, ProbeWritesTheFileThatBenchReads) {
  ASSERT_EQ(on_two_ranks("probe"), 0) << read_all(path("err"));
  EXPECT_NE(read_all(path("cluster.toml")).find("[between_hosts]"), std::string::npos);
  ASSERT_EQ(on_two_ranks("bench --costs cluster.toml --largest 16384 --rounds 1 --json"), 0) << read_all(path("err"));
  const auto report = nlohmann::json::parse(read_all(path("out")));
  EXPECT_EQ(report["ranks"], 2);
  ASSERT_EQ(report["rows"].size(), 3u);  // 1, 4 and 16 KB
  EXPECT_EQ(report["rows"][2]["how"], "shared memory");
}

TEST_F(ClusterCommand, BenchTimesTheCollectiveThatIsAskedFor) {
  for (const std::string name : {"all_gather", "reduce_scatter", "broadcast", "reduce_to_root"}) {
    ASSERT_EQ(on_two_ranks("bench --collective " + name + " --largest 4096 --rounds 1 --json"), 0)
        << read_all(path("err"));
    const auto report = nlohmann::json::parse(read_all(path("out")));
    EXPECT_EQ(report["collective"], name);
    EXPECT_EQ(report["rows"].size(), 2u);
  }
  EXPECT_NE(on_two_ranks("bench --collective all_to_all"), 0);
  EXPECT_NE(read_all(path("err")).find("--collective all_to_all: give all_reduce, all_gather"), std::string::npos);
}

TEST_F(ClusterCommand, NamesACostFileThatIsNotThere) {
  EXPECT_NE(on_two_ranks("bench --costs nowhere.toml"), 0);
  const std::string err = read_all(path("err"));
  EXPECT_NE(err.find("nowhere.toml"), std::string::npos) << err;
  EXPECT_EQ(err.find("nowhere.toml"), err.rfind("nowhere.toml")) << "said more than once: " << err;
}

}  // namespace
}  // namespace weft::cli_tests
