// Processes that train one trial after the other (weft tune trainer), as a tuner uses them.
#include <chrono>
#include <set>
#include <thread>

#include "tests/cli/run_files.h"
#include "weft/tune/training/training.h"

namespace weft::cli_tests {
namespace {

class Trainers : public RunTest {
 protected:
  void write_recipe(const std::string& name, const std::string& more) const {
    write_all(path(name), "data = \"idx:" + absolute("train-images,") + absolute("train-labels,") +
                              absolute("test-images,") + absolute("test-labels") +
                              "\"\nvalidation = 0.25\nbatch = 32\n" + more +
                              "[model]\nname = \"mlp\"\nhidden = \"8\"\n");
  }
  std::string absolute(const std::string& name) const { return (directory_ / name).string(); }
  tune::TrainingJob job(int64_t number, const std::string& recipe) const {
    return {.trial = number,
            .run = path("run" + std::to_string(number)),
            .recipe = path(recipe),
            .options = {"--threads", "1", "--quiet"}};
  }
  static void finish(tune::Training& training) {
    while (!training.has_ended()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }

  tune::Trainers trainers_{WEFT_PROGRAM};
};

TEST_F(Trainers, OneProcessTrainsOneTrialAfterTheOtherToTheSameBits) {
  write_recipe("recipe.toml", "epochs = 2\n");
  std::set<int64_t> processes;
  for (int64_t number = 0; number < 3; ++number) {
    const auto training = trainers_.train(job(number, "recipe.toml"));
    finish(*training);
    EXPECT_EQ(training->exit_code(), 0);
    EXPECT_NE(training->read().find("test accuracy"), std::string::npos);
    processes.insert(training->process());
  }
  EXPECT_EQ(processes.size(), 1u);
  ASSERT_EQ(weft({"train", "recipe.toml", "--run", "alone", "--threads", "1", "--quiet"}).code, 0);
  const auto weights = [&](const std::string& run) {
    return read_all(fs::canonical(path(run + "/checkpoints/best")) / "model.safetensors");
  };
  for (const std::string run : {"run0", "run1", "run2"}) EXPECT_TRUE(weights(run) == weights("alone")) << run;
}

TEST_F(Trainers, TwoAtATimeAreTwoProcesses) {
  write_recipe("recipe.toml", "epochs = 2\n");
  const auto one = trainers_.train(job(0, "recipe.toml")), other = trainers_.train(job(1, "recipe.toml"));
  EXPECT_NE(one->process(), other->process());
  finish(*one);
  finish(*other);
}

TEST_F(Trainers, AnotherTakesThePlaceOfOneWhoseTrialFails) {
  write_recipe("recipe.toml", "epochs = 1\n");
  write_recipe("wrong.toml", "epochs = 1\nbatch_schedule.batches = \"no\"\n");
  const auto failed = trainers_.train(job(0, "wrong.toml"));
  finish(*failed);
  EXPECT_EQ(failed->exit_code(), 2);
  EXPECT_NE(failed->read().find("weft: "), std::string::npos);
  const auto next = trainers_.train(job(1, "recipe.toml"));
  finish(*next);
  EXPECT_EQ(next->exit_code(), 0);
  EXPECT_NE(next->process(), failed->process());
}

TEST_F(Trainers, OneThatIsStoppedMakesACheckpointAndEnds) {
  write_recipe("long.toml", "epochs = 100000\ncheckpoint.every_epochs = 0\n");
  const auto training = trainers_.train(job(0, "long.toml"));
  while (!training->has_ended() && read_all(path("run0/metrics.jsonl")).empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  training->stop();
  finish(*training);
  EXPECT_EQ(training->exit_code(), 130);
  EXPECT_FALSE(training->was_killed());
  EXPECT_FALSE(fs::is_empty(path("run0/checkpoints")));
}

TEST_F(Trainers, OneThatIsKilledSaysSo) {
  write_recipe("long.toml", "epochs = 100000\n");
  write_recipe("recipe.toml", "epochs = 1\n");
  const auto killed = trainers_.train(job(0, "long.toml"));
  kill(static_cast<pid_t>(killed->process()), SIGKILL);
  finish(*killed);
  EXPECT_TRUE(killed->was_killed());
  EXPECT_EQ(killed->exit_code(), 128 + SIGKILL);
  const auto next = trainers_.train(job(1, "recipe.toml"));
  finish(*next);
  EXPECT_EQ(next->exit_code(), 0);
}

TEST_F(Trainers, IdleOnesEndWhenTheyAreDismissed) {
  write_recipe("recipe.toml", "epochs = 1\n");
  const auto training = trainers_.train(job(0, "recipe.toml"));
  finish(*training);
  const auto process = static_cast<pid_t>(training->process());
  EXPECT_EQ(kill(process, 0), 0);
  trainers_.dismiss_idle();
  EXPECT_NE(kill(process, 0), 0);
}

TEST_F(Trainers, WordsComeWhole) {
  const std::vector<std::string> words = {"train", "a\nb", "\xff", "--quiet"};
  std::string read = tune::print_words(words) + "train";
  EXPECT_EQ(tune::take_words(read), words);
  EXPECT_EQ(read, "train");
  EXPECT_EQ(tune::take_words(read), std::nullopt);
}

TEST_F(Trainers, AStopThatComesAsARunEndsDoesNotHarmTheNext) {
  write_recipe("recipe.toml", "epochs = 1\n");
  for (int64_t number = 0; number < 6; number += 2) {
    const auto training = trainers_.train(job(number, "recipe.toml"));
    while (!fs::exists(path("run" + std::to_string(number)) / "summary.json") && !training->has_ended())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    training->stop();
    finish(*training);
    const auto next = trainers_.train(job(number + 1, "recipe.toml"));
    finish(*next);
    EXPECT_EQ(next->exit_code(), 0) << next->read();
    EXPECT_TRUE(fs::exists(path("run" + std::to_string(number + 1)) / "summary.json"));
  }
}

TEST_F(Trainers, OtherWordsAreNamed) {
  write_all(path("words"), "train recipe.toml\n");
  const std::string command = "cd '" + directory_.string() + "' && " + WEFT_PROGRAM + " tune trainer < words 2> said";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 2);
  EXPECT_NE(read_all(path("said")).find("are no words of `weft train`"), std::string::npos) << read_all(path("said"));
}

}  // namespace
}  // namespace weft::cli_tests
