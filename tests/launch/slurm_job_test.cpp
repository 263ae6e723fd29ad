// The script that Slurm is given, without Slurm.
#include "weft/launch/slurm_job.h"

#include <gmock/gmock.h>

namespace weft::launch {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

SlurmTraining training() {
  return {.ranks = 4,
          .restarts = 2,
          .run = "runs/my run",
          .words = {"train", "demo", "--run", "runs/my run"},
          .resuming_words = {"train", "--resume", "runs/my run"}};
}

TEST(SlurmScript, SaysWhatItWasAskedFor) {
  SlurmOptions options;
  options.nodes = 2;
  options.cpus_per_rank = 16;
  options.time = "12:00:00";
  options.partition = "cpu";
  options.lines = {"--account=me"};
  options.setup = {"module load openmpi"};
  const std::string script = slurm_script(training(), options, "/opt/weft");
  for (const char* line :
       {"#SBATCH --ntasks=4\n", "#SBATCH --nodes=2\n", "#SBATCH --cpus-per-task=16\n", "#SBATCH --time=12:00:00\n",
        "#SBATCH --partition=cpu\n", "#SBATCH --account=me\n", "#SBATCH --requeue\n", "#SBATCH --no-kill\n",
        "#SBATCH --signal=B:USR1@60\n", "#SBATCH --output='runs/my run.slurm-%j.log'\n", "\nmodule load openmpi\n",
        "/opt/weft launch -n 4 --restarts 2 -- train demo --run 'runs/my run' &\n",
        "/opt/weft launch -n 4 --restarts 2 -- train --resume 'runs/my run' &\n"})
    EXPECT_THAT(script, HasSubstr(line));
  EXPECT_EQ(script.find("\n#SBATCH", script.find("\nmodule load openmpi\n")), std::string::npos);
}

TEST(SlurmScript, WithoutRestartsAndLimit) {
  SlurmTraining once = training();
  once.restarts = 0;
  const std::string script = slurm_script(once, {}, "weft");
  EXPECT_THAT(script, HasSubstr("#SBATCH --no-requeue\n"));
  EXPECT_THAT(script, Not(HasSubstr("--signal")));
  EXPECT_THAT(script, HasSubstr("weft launch -n 4 -- train demo"));
}

}  // namespace
}  // namespace weft::launch
