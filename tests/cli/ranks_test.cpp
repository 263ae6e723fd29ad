// Several processes under mpirun train as one.
#include "tests/cli/ranks_under_mpirun.h"

namespace weft::cli_tests {
namespace {

TEST_F(Ranks, TheLossCurveIsThatOfOneProcess) {
  write_idx("train", 320, 16);
  write_idx("test", 72, 16);
  ASSERT_EQ(weft(lenet("one", "10")).code, 0);
  for (const int ranks : {2, 4}) {
    const Outcome outcome = weft_on(ranks, lenet(std::to_string(ranks), "10"));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(count_of(outcome.out, "run directory: "), 1) << outcome.out;
    expect_same_losses(std::to_string(ranks), "one");
    const auto summary = json_of(std::to_string(ranks) + "/summary.json"), alone = json_of("one/summary.json");
    EXPECT_EQ(summary["ranks"], ranks);
    EXPECT_EQ(summary["steps"], 50);
    EXPECT_NEAR(summary["test_loss"].get<double>(), alone["test_loss"].get<double>(), 1e-4);
    EXPECT_EQ(summary["test_accuracy"], alone["test_accuracy"]);
  }
}

TEST_F(Ranks, OneThatIsStartedInAScriptHasTheCoresOfItsHost) {
  const auto threads = [&](const std::vector<std::string>& prefix) {
    const Outcome outcome = Process({"bench", "lenet5", "--seconds", "0.01", "--json"}, directory_, -1, prefix).wait();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out).at("threads").get<int>();
  };
  write_all(path("script"), "#!/bin/bash\n\"$@\"\nexit $?\n");
  fs::permissions(path("script"), fs::perms::owner_all);
  const std::vector<std::string> bound = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "mpirun",
                                          "-n", "1"};
  std::vector<std::string> in_script = bound;
  in_script.push_back("./script");
  const int all = threads({});
  EXPECT_EQ(threads(bound), all);
  EXPECT_EQ(threads(in_script), all);
}

TEST_F(Ranks, AnInterruptedRunGoesOnWithAnotherNumberOfThem) {
  ASSERT_EQ(weft(tiny_run("whole", {"--epochs", "200", "--set", "checkpoint.every_epochs=10"})).code, 0);
  Process process(tiny_run("cut", {"--epochs", "200", "--set", "checkpoint.every_epochs=10"}), directory_, -1,
                  mpirun(2));
  while (!process.has_ended() && !fs::exists(path("cut/checkpoints/best")))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const std::vector<pid_t> ranks = training_processes();
  ASSERT_EQ(ranks.size(), 2u);
  kill(ranks.back(), SIGTERM);  // which tells the other
  const Outcome outcome = process.wait();
  EXPECT_NE(outcome.code, 0);
  EXPECT_EQ(count_of(outcome.err, "weft: interrupted after step "), 1) << outcome.err;
  EXPECT_FALSE(fs::exists(path("cut/summary.json")));
  const Outcome resumed = weft({"train", "--resume", "cut", "--quiet"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  expect_same_losses("cut", "whole");
}

TEST_F(Ranks, ALaunchEndsWhereARankWasToldToStop) {
  std::vector<std::string> arguments = {"launch", "-n", "2", "--restarts", "1", "--"};
  const std::vector<std::string> train = tiny_run("cut", {"--epochs", "2000", "--set", "checkpoint.every_epochs=10"});
  arguments.insert(arguments.end(), train.begin(), train.end());
  Process process(arguments, directory_);
  while (!process.has_ended() && !fs::exists(path("cut/checkpoints/best")))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const std::vector<pid_t> ranks = training_processes();
  ASSERT_EQ(ranks.size(), 2u);
  kill(ranks.back(), SIGTERM);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "weft: interrupted after step "), 1) << outcome.err;
  EXPECT_EQ(outcome.err.find("start 2 of at most 2"), std::string::npos) << outcome.err;
}

TEST_F(Ranks, WeightsInPartsAreExportedBeforeANewRunBeginsWithThem) {
  ASSERT_EQ(weft_on(2, tiny_run("p", {"--zero", "3"})).code, 0);
  expect_error(weft({"train", "--resume", "p", "--set", "optimizer.name=adamw"}), 2,
               "`weft export p weights.safetensors`, then on 2 ranks `train p/spec.toml --set 'optimizer.name=adamw' "
               "--init weights.safetensors`");
  expect_error(weft({"eval", "p", "--weights", "p/checkpoints/best/model.safetensors"}), 2,
               "holds only what the 2 ranks of its run did not divide");
  ASSERT_EQ(weft({"export", "p", "weights.safetensors"}).code, 0);
  EXPECT_EQ(weft_on(2, {"train", "p/spec.toml", "--set", "optimizer.name=adamw", "--init", "weights.safetensors",
                        "--run", "next", "--quiet"})
                .code,
            0);
}

TEST_F(Ranks, LabelSmoothingOfASharedLayerHasItsEffect) {
  std::vector<std::string> arguments = tiny_run("t", {"--tensor", "2", "--set", "loss.label_smoothing=0.1", "--set",
                                                      "schedule.name=plateau", "--set", "schedule.monitor=test_loss"});
  std::erase(arguments, "--quiet");
  const Outcome outcome = weft_on(2, arguments);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("lets the test data decide"), std::string::npos) << "notes are there: " << outcome.err;
  EXPECT_EQ(outcome.err.find("which has a loss of its own"), std::string::npos) << outcome.err;
}

// Also where each is a host of its own, and cut by a kill.
TEST_F(Ranks, WithVirtualRanksTheWeightsAreBitwiseTheSameOnAnyNumberOfThem) {
  const auto run = [&](const std::string& name) {
    return tiny_run(name, {"--virtual-ranks", "4", "--epochs", "3", "--set", "checkpoint.every_steps=2"});
  };
  const auto weights = [&](const std::string& name) {
    const auto step = json_of(name + "/summary.json")["steps"].get<int64_t>();
    const std::string digits = std::to_string(step);
    const fs::path last = path(name) / "checkpoints" / ("step-" + std::string(8 - digits.size(), '0') + digits);
    return read_all(last / "model.safetensors") + read_all(last / "optimizer.safetensors");
  };
  ASSERT_EQ(weft(run("one")).code, 0);
  const std::string wanted = weights("one");
  ASSERT_GT(wanted.size(), 1000u);
  for (const int ranks : {2, 4})
    for (const bool apart : {false, true}) {
      std::vector<std::string> launcher = mpirun(ranks);
      if (apart) launcher.insert(launcher.begin(), "WEFT_RANKS_PER_HOST=1");
      const std::string name = std::to_string(ranks) + (apart ? "apart" : "");
      const Outcome outcome = Process(run(name), directory_, -1, launcher).wait();
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_TRUE(weights(name) == wanted) << name;
    }
  // Killed on four, resumed on fewer.
  for (const int ranks : {1, 2}) {
    const std::string name = "killed" + std::to_string(ranks);
    std::vector<std::string> train = tiny_run(name, {"--virtual-ranks", "4", "--epochs", "300"});
    train.insert(train.end(), {"--set", "checkpoint.every_epochs=10", "--set", "schedule.name=constant"});
    std::vector<std::string> whole = train;
    *std::find(whole.begin(), whole.end(), name) = name + "whole";
    ASSERT_EQ(weft(whole).code, 0);
    Process process(train, directory_, -1, mpirun(4));
    while (!process.has_ended() && !fs::exists(path(name + "/checkpoints/best")))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const std::vector<pid_t> processes = training_processes();
    ASSERT_EQ(processes.size(), 4u);
    kill(processes.back(), SIGKILL);
    EXPECT_NE(process.wait().code, 0);
    const std::vector<std::string> resume = {"train", "--resume", name, "--quiet"};
    ASSERT_EQ((ranks == 1 ? weft(resume) : weft_on(ranks, resume)).code, 0);
    EXPECT_TRUE(weights(name) == weights(name + "whole")) << name;
  }
}

TEST_F(Ranks, WhereTheyShareStatesTheLossesAreTheSameAndEveryCommandReadsTheRun) {
  const auto run = [&](const std::string& name, const std::string& zero) {
    return tiny_run(name, {"--epochs", "2", "--zero", zero, "--set", "late_multiply=false"});
  };
  ASSERT_EQ(weft_on(2, run("plain", "0")).code, 0);
  for (const std::string zero : {"1", "2", "3"})
    for (const bool apart : {false, true}) {
      std::vector<std::string> launcher = mpirun(2);
      if (apart) launcher.insert(launcher.begin(), "WEFT_RANKS_PER_HOST=1");
      const std::string name = "zero" + zero + (apart ? "apart" : "");
      const Outcome outcome = Process(run(name, zero), directory_, -1, launcher).wait();
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      expect_same_losses(name, "plain");
      const Outcome exported = weft({"export", name, name + ".safetensors"});
      EXPECT_EQ(exported.code, 0) << exported.err;
      EXPECT_TRUE(read_all(path(name + ".safetensors")) == read_all(path("zero1.safetensors"))) << "one file, whole";
      EXPECT_EQ(weft({"eval", name}).code, 0);
      const Outcome more = weft({"train", "--resume", name, "--epochs", "3", "--quiet"});
      EXPECT_EQ(more.code, 0) << "on one process: " << more.err;
    }
  const Outcome alone = weft(run("alone", "1"));
  EXPECT_EQ(alone.code, 2);
  EXPECT_EQ(count_of(alone.err, "shard.zero = 1 with one rank, which has nobody to share its states with"), 1)
      << alone.err;
}

TEST_F(Ranks, ADryRunOfSeveralRanksPointsToThePlanOnce) {
  const std::vector<std::string> words = tiny_run("r", {"--dry-run", "--set", "mesh.pipeline=2"});
  for (const Outcome& outcome : {weft(words), weft_on(2, words)}) {
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(count_of(outcome.err, "--dry-run measures steps of one process, and these are steps of 2 ranks"), 1)
        << outcome.err;
    EXPECT_EQ(count_of(outcome.err, "--ranks 2`"), 1) << outcome.err;
  }
}

TEST_F(Ranks, TheGraphOfARunIsThatOfItsRanks) {
  ASSERT_EQ(weft_on(2, tiny_run("r", {"--zero", "1"})).code, 0);
  const Outcome graph = weft({"graph", "r"});
  EXPECT_EQ(graph.code, 0) << graph.err;
  EXPECT_NE(graph.out.find("flat(data=2)"), std::string::npos);
  EXPECT_EQ(graph.err, "");
}

TEST_F(Ranks, OfAModelAloneTheGraphSaysHowManyRanksItAssumes) {
  const Outcome graph = weft({"graph", "mlp", "--batch", "8", "--set", "shard.zero=1"});
  EXPECT_EQ(graph.code, 0) << graph.err;
  EXPECT_EQ(count_of(graph.err, "assumed 2 ranks, of which 2 along mesh.data; --set mesh.data=N says another number"),
            1)
      << graph.err;
}

TEST_F(Ranks, ExplainNamesTheCommandOfTheRunsRanks) {
  const Outcome trained = weft_on(2, tiny_run("r"));
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(trained.out.find("mpirun -n 2 " WEFT_PROGRAM " explain r"), std::string::npos) << trained.out;
  const Outcome alone = weft({"explain", "r", "--memory"});
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_NE(alone.err.find("the run had 2 ranks; for that, start 2 ranks (`mpirun -n 2 weft explain r`)"),
            std::string::npos)
      << alone.err;
}

/// A text of seven letters, and the command that trains a small language model on it, with layers split over two ranks.
class OfSevenTokens : public Ranks {
 protected:
  std::vector<std::string> train(const std::string& run, const std::vector<std::string>& more) {
    std::string text;
    for (int at = 0; at < 3000; ++at) text += "abcdefg"[at * at % 7];
    write_all(path("t.txt"), text + "abcdefg");
    std::vector<std::string> words{"train",
                                   "--model",
                                   "transformer_lm",
                                   "--data",
                                   "text:t.txt?length=16",
                                   "--set",
                                   "model.layers=1",
                                   "--set",
                                   "model.width=16",
                                   "--set",
                                   "model.heads=2",
                                   "--batch",
                                   "8",
                                   "--max-steps",
                                   "5",
                                   "--run",
                                   run,
                                   "--threads",
                                   "1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_F(OfSevenTokens, WeightsThatSplitLayersLeaveWholeAreNamed) {
  const Outcome outcome = weft_on(2, train("r", {"--tensor", "2"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "mesh.tensor = 2: every rank has all of "), 1) << outcome.err;
  EXPECT_NE(outcome.err.find("'head.weight' (7,16)"), std::string::npos) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "--set model.vocabulary=8 gives the vocabulary rows to divide"), 1) << outcome.err;
}

TEST_F(OfSevenTokens, APaddedVocabularyIsDividedAndTrainsAsOnOneRank) {
  const std::vector<std::string> padded{"--set", "model.vocabulary=8", "--set",
                                        "shard.tensor=tok_emb.weight=rows,head.weight=outputs,*=auto"};
  const Outcome one = weft(train("one", padded));
  ASSERT_EQ(one.code, 0) << one.err;
  std::vector<std::string> split = padded;
  split.insert(split.end(), {"--tensor", "2"});
  const Outcome two = weft_on(2, train("two", split));
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_EQ(count_of(two.err, "every rank has all of"), 0) << two.err;
  expect_same_losses("two", "one");
  write_all(path("beginning.txt"), "abc");
  const Outcome text = weft({"predict", "two", "beginning.txt", "--length", "200", "--temperature", "50"});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_GE(text.out.size(), 203u) << text.out;  // all of seven letters
}

TEST_F(Ranks, RanksThatCannotShareTheVirtualRanksAreTold) {
  const Outcome outcome = weft_on(3, tiny_run("r", {"--virtual-ranks", "4"}));
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "virtual_ranks = 4 cannot be divided among 3 ranks; start 2 of them"), 1)
      << outcome.err;
}

TEST_F(Ranks, AUsersErrorIsSaidOnce) {
  const Outcome outcome = weft_on(3, tiny_run("r"));
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "weft: "), 1) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "batch = 32 cannot be divided among 3 ranks; choose 30 or 33"), 1) << outcome.err;
  EXPECT_FALSE(fs::exists(path("r")));
}

TEST_F(Ranks, AUsersErrorIsSaidOnceByWhateverComputes) {
  std::vector<std::string> odd = tiny_run("r");
  *std::find(odd.begin(), odd.end(), "32") = "33";
  ASSERT_EQ(weft(odd).code, 0);
  const auto expect_once = [&](const std::vector<std::string>& arguments, int code, const std::string& part) {
    const Outcome outcome = weft_on(2, arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(count_of(outcome.err, "weft: "), 1) << outcome.err;
    EXPECT_EQ(count_of(outcome.err, "weft: " + part), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  };
  expect_once({"bench", "mlp", "--batch", "33"}, 2, "--batch 33 cannot be shared by 2 ranks alike; try --batch 34");
  expect_once({"bench", "nonesuch"}, 2, "there is no model 'nonesuch'");
  expect_once({"bench", "mlp", "--batch", "32", "--set", "cluster=nowhere.toml"}, 1, "cannot open 'nowhere.toml'");
  expect_once({"bench", "mlp", "--batch", "32", "--without", "nonesuch"}, 2, "there is no pass 'nonesuch'");
  expect_once({"explain", "nowhere"}, 2, "there is no run directory 'nowhere'");
  expect_once({"explain", "r"}, 2, "batch 33 cannot be shared by 2 ranks alike");
  expect_once({"explain", "r", "--batch", "32", "--memory-limit", "1KB"}, 2, "memory_limit = 1KB: ");
}

TEST_F(Ranks, KernelsAreMeasuredByTheFirstAlone) {
  ASSERT_EQ(weft(tiny_run("r")).code, 0);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"bench", "lenet5", "--batch", "32", "--seconds", "0"},
        std::vector<std::string>{"explain", "r", "--steps", "1"}}) {
    std::vector<std::string> launcher = mpirun(2), words = arguments;
    launcher.insert(launcher.begin(), "WEFT_CACHE_DIR=" + path("cache-" + arguments[0]).string());
    words.insert(words.end(), {"--autotune", "measure", "--threads", "1"});
    const Outcome outcome = Process(words, directory_, -1, launcher).wait();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(count_of(outcome.err, "weft: measured the kernels of "), 1) << outcome.err;
    const auto files = fs::directory_iterator(path("cache-" + arguments[0]));
    EXPECT_EQ(std::distance(begin(files), end(files)), 1);
  }
}

TEST_F(Ranks, ThePageOfExplainHasWhatTheyExchange) {
  write_idx("train", 64, 16);
  write_idx("test", 64, 16);
  ASSERT_EQ(weft_on(2, lenet("r", "1")).code, 0);
  const Outcome outcome = weft_on(2, {"explain", "r", "--steps", "1", "--html", "r.html"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string page = read_all(path("r.html"));
  for (const char* text : {"<h2>Communication between ranks</h2>", "2 ranks of", "starts at ms</th>", "in each step;"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
}

TEST_F(Ranks, ExplainTellsOfEachOfThem) {
  ASSERT_EQ(weft_on(2, tiny_run("r", {"--epochs", "1", "--zero", "1"})).code, 0);
  const Outcome outcome = weft_on(2, {"explain", "r", "--steps", "1", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto ranks = nlohmann::json::parse(outcome.out)["ranks"];
  ASSERT_EQ(ranks.size(), 2u);
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ranks[rank]["rank"], rank);
    EXPECT_GT(ranks[rank]["state_bytes"], 0);
    EXPECT_GT(ranks[rank]["exchanged_bytes"], 0);
  }
  EXPECT_NE(weft_on(2, {"explain", "r", "--steps", "1"}).out.find("\nrank 1: states "), std::string::npos);
}

TEST_F(Ranks, WhatAMeanOfTheirWeightsExchangesIsExplained) {
  write_idx("train", 64, 16);
  write_idx("test", 64, 16);
  std::vector<std::string> train = lenet("r", "1");
  train.insert(train.end(), {"--set", "averaging.period=3"});
  ASSERT_EQ(weft_on(2, train).code, 0);
  const Outcome outcome = weft_on(2, {"explain", "r", "--comm", "--steps", "1"});
  EXPECT_NE(outcome.out.find("Ranks exchange nothing in their steps"), std::string::npos) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("After 3 of them"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("1 collective of "), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace weft::cli_tests
