// Whole runs as processes: what they leave behind, and that being killed changes nothing.
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/run_files.h"

namespace weft::cli_tests {
namespace {

class Run : public RunTest {};

TEST_F(Run, LeavesACompleteDirectory) {
  const Outcome outcome = weft(tiny_run("r", {"--epochs", "3"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* name : {"spec.toml", "data.json", "metrics.jsonl", "summary.json", "plan.json", "graph.weft",
                           "checkpoints/best/model.safetensors"})
    EXPECT_TRUE(fs::exists(path("r") / name)) << name;
  const nlohmann::json summary = json_of("r/summary.json");
  for (const char* key : {"model", "data", "precision", "threads", "parameters", "epochs", "steps", "test_accuracy",
                          "test_loss", "train_seconds", "images_per_second", "planned_peak_bytes", "peak_rss_bytes",
                          "planned_total_bytes", "rss_growth_bytes", "arena_bytes"})
    EXPECT_TRUE(summary.contains(key)) << key;
  EXPECT_EQ(summary["steps"], 30);
  EXPECT_EQ(summary["arena_bytes"], summary["planned_peak_bytes"]);
  EXPECT_GT(summary["test_accuracy"], 0.9) << "bright quarters are easy to tell apart";
  EXPECT_NE(outcome.out.find("\n  " WEFT_PROGRAM " eval r\n"), std::string::npos);
  EXPECT_NE(outcome.out.find("\n  " WEFT_PROGRAM " explain r\n"), std::string::npos);
  EXPECT_NE(outcome.out.find("\n  " WEFT_PROGRAM " predict r "), std::string::npos);
}

TEST_F(Run, TakesFreshDirectoriesByDefault) {
  std::vector<std::string> arguments = tiny_run("x");
  arguments.erase(arguments.begin() + 5, arguments.begin() + 7);  // --run x
  ASSERT_EQ(weft(arguments).code, 0);
  ASSERT_EQ(weft(arguments).code, 0);
  EXPECT_TRUE(fs::exists(path("runs/mlp-idx-1/summary.json")));
  EXPECT_TRUE(fs::exists(path("runs/mlp-idx-2/summary.json")));
}

TEST_F(Run, SpecOfARunIsARecipeOfTheSameRun) {
  ASSERT_EQ(weft(tiny_run("a")).code, 0);
  ASSERT_EQ(weft({"train", "a/spec.toml", "--run", "b", "--quiet"}).code, 0);
  EXPECT_EQ(read_all(path("a/spec.toml")), read_all(path("b/spec.toml")));
  EXPECT_EQ(last_state("a"), last_state("b"));
}

TEST_F(Run, SameSeedTwiceIsBitwiseTheSame) {
  ASSERT_EQ(weft(tiny_run("a", {"--seed", "5"})).code, 0);
  ASSERT_EQ(weft(tiny_run("b", {"--seed", "5"})).code, 0);
  ASSERT_EQ(weft(tiny_run("c", {"--seed", "6"})).code, 0);
  EXPECT_EQ(last_state("a"), last_state("b"));
  EXPECT_NE(last_state("a"), last_state("c"));
}

TEST_F(Run, KilledAtAnyMomentAndResumedIsBitwiseTheSame) {
  const std::vector<std::string> more = {
      "--epochs",           "30", "--set", "checkpoint.every_steps=7", "--set", "augment.crop_padding=1", "--set",
      "augment.flip=random"};
  ASSERT_EQ(weft(tiny_run("straight", more)).code, 0);
  uint32_t random = 2024;
  int kills = 0;
  for (int attempt = 0; attempt < 40; ++attempt) {
    const bool resumes = fs::exists(path("killed/spec.toml"));
    Process process(
        resumes ? std::vector<std::string>{"train", "--resume", "killed", "--quiet"} : tiny_run("killed", more),
        directory_);
    random = random * 1664525u + 1013904223u;
    // The last attempts may take all the time they want.
    const int milliseconds = attempt < 15 ? 20 + static_cast<int>((random >> 16) % 250) : 100000;
    for (int waited = 0; waited < milliseconds && !process.has_ended(); ++waited)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!process.has_ended()) {
      process.send(SIGKILL);
      ++kills;
      process.wait();
      continue;
    }
    const Outcome outcome = process.wait();
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    break;
  }
  EXPECT_GT(kills, 0);
  ASSERT_TRUE(fs::exists(path("killed/summary.json")));
  EXPECT_EQ(last_checkpoint("killed"), last_checkpoint("straight"));
  EXPECT_EQ(last_state("killed"), last_state("straight"));
  EXPECT_EQ(json_of("killed/summary.json")["test_loss"], json_of("straight/summary.json")["test_loss"]);
  EXPECT_EQ(json_of("killed/summary.json")["train_loss"], json_of("straight/summary.json")["train_loss"]);
}

TEST_F(Run, ResumedMetricsHaveNoStepTwice) {
  Process process(
      tiny_run("r", {"--epochs", "200", "--set", "checkpoint.every_steps=130", "--set", "checkpoint.every_epochs=0"}),
      directory_);
  while (!process.has_ended() && !fs::exists(path("r/checkpoints/step-00000130")))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  process.send(SIGKILL);
  process.wait();
  ASSERT_EQ(weft({"train", "--resume", "r", "--quiet"}).code, 0);
  const auto seen = records("r");
  for (const auto& [record, count] : seen) EXPECT_EQ(count, 1) << record.first << " " << record.second;
  EXPECT_EQ(seen.size(), 200u + 100u) << "an epoch record each, a step record every 20 of 2000 steps";
}

TEST_F(Run, InterruptSavesAndLeaves) {
  const std::vector<std::string> more = {"--epochs", "400", "--set", "checkpoint.every_epochs=0"};
  ASSERT_EQ(weft(tiny_run("straight", more)).code, 0);
  Process process(tiny_run("r", more), directory_);
  while (!process.has_ended() && !fs::exists(path("r/metrics.jsonl")))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  process.send(SIGINT);
  const Outcome outcome = process.wait();
  if (outcome.code == 0) GTEST_SKIP() << "the run was over before the signal came";
  EXPECT_EQ(outcome.code, 130);
  EXPECT_NE(outcome.err.find("go on with `" WEFT_PROGRAM " train --resume r`"), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(path("r/summary.json")));
  EXPECT_NE(last_checkpoint("r"), "");
  ASSERT_EQ(weft({"train", "--resume", "r", "--quiet"}).code, 0);
  EXPECT_EQ(last_state("r"), last_state("straight"));
}

TEST_F(Run, ResumeOfAFinishedRunChangesNothing) {
  ASSERT_EQ(weft(tiny_run("r")).code, 0);
  const std::string state = last_state("r"), metrics = read_all(path("r/metrics.jsonl"));
  const std::string summary = read_all(path("r/summary.json"));
  const Outcome outcome = weft({"train", "--resume", "r", "--quiet", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "weft: 'r' is finished: this is its summary\n");
  EXPECT_EQ(outcome.out, summary);
  EXPECT_EQ(last_state("r"), state);
  EXPECT_EQ(read_all(path("r/metrics.jsonl")), metrics);
  EXPECT_EQ(read_all(path("r/summary.json")), summary);
}

TEST_F(Run, GoesOnAndEvaluatesFromAnotherDirectory) {
  ASSERT_EQ(weft(tiny_run("r")).code, 0);
  fs::remove_all(path("r/checkpoints"));
  const fs::path other = path("elsewhere");
  fs::create_directory(other);
  const Outcome resumed = Process({"train", "--resume", "../r", "--quiet"}, other).wait();
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  const Outcome evaluated = Process({"eval", "../r"}, other).wait();
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
}

TEST_F(Run, PlansTheMemoryThatItTakes) {
#ifdef WEFT_SANITIZED
  GTEST_SKIP() << "sanitizers take memory of their own";
#endif
  write_idx("large", 1024, 28);
  const Outcome outcome =
      weft({"train", "--model", "resnet9", "--set", "model.width=16", "--data", "idx:large-images,large-labels",
            "--batch", "256", "--epochs", "1", "--threads", "1", "--run", "r", "--quiet"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json summary = json_of("r/summary.json");
  const double planned = summary["planned_total_bytes"], measured = summary["rss_growth_bytes"];
  EXPECT_GT(planned, 150e6) << "too small a model to tell";
  EXPECT_NEAR(measured / planned, 1, 0.05) << planned << " bytes planned, " << measured << " measured";
}

TEST_F(Run, EvalFindsTheAccuracyOfTheSummary) {
  ASSERT_EQ(weft(tiny_run("r")).code, 0);
  const Outcome outcome = weft({"eval", "r", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto result = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(result["samples"], 72);
  EXPECT_DOUBLE_EQ(result["accuracy"], json_of("r/summary.json")["test_accuracy"]);
  EXPECT_DOUBLE_EQ(result["loss"], json_of("r/summary.json")["test_loss"]);
}

TEST_F(Run, PredictNamesTheBrightQuarter) {
  ASSERT_EQ(weft(tiny_run("r", {"--epochs", "10"})).code, 0);
  std::string pixels(64, '\x30');
  for (size_t row = 4; row < 8; ++row)
    for (size_t column = 0; column < 4; ++column) pixels[row * 8 + column] = static_cast<char>(0xd0);
  write_all(path("lower_left.pgm"), "P5\n8 8\n255\n" + pixels);
  const Outcome outcome = weft({"predict", "r", "lower_left.pgm", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto result = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(result[0]["classes"][0]["class"], 2);
  double sum = 0;
  for (const auto& entry : result[0]["classes"]) sum += entry["probability"].get<double>();
  EXPECT_NEAR(sum, 1, 1e-5) << "all four classes are shown";
}

TEST_F(Run, WithoutAValidationPartTheBestIsTheNewest) {
  ASSERT_EQ(weft(tiny_run("r", {"--epochs", "4"})).code, 0);
  EXPECT_EQ(fs::read_symlink(path("r/checkpoints/best")).string(), last_checkpoint("r"));
}

TEST_F(Run, ADryRunSaysWhatItTakesAndWritesNothing) {
  const Outcome outcome =
      weft(tiny_run("r", {"--epochs", "3", "--validation", "0.2", "--set", "stop.patience=2", "--dry-run"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"256 images", "64 for validation", "72 for testing", "mlp, ", "24 steps of batch 32",
                           "ends earlier where validation_loss does not improve in 2 evaluations", "planned",
                           "at most about", "for checkpoints of"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << "wanted: " << part << "\ngot: " << outcome.out;
  EXPECT_FALSE(fs::exists(path("r")));
}

TEST_F(Run, TrainsWithoutTestFiles) {
  const Outcome outcome = weft({"train", "--model", "mlp", "--data", "idx:train-images,train-labels", "--run", "r",
                                "--batch", "32", "--epochs", "1", "--quiet"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(json_of("r/summary.json")["test_accuracy"].is_null());
  EXPECT_EQ(weft({"eval", "r"}).code, 0);
}

TEST_F(Run, ExplainNamesThePeakAndTheKernels) {
  ASSERT_EQ(weft(tiny_run("r")).code, 0);
  const Outcome text = weft({"explain", "r", "--steps", "2"}), data = weft({"explain", "r", "--steps", "2", "--json"});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("<- peak"), std::string::npos);
  EXPECT_NE(text.out.find("matmul"), std::string::npos);
  const auto root = nlohmann::json::parse(data.out);
  int64_t standing = 0;
  for (const auto& tensor : root["memory"]["at_peak"]) standing += tensor["bytes"].get<int64_t>();
  EXPECT_EQ(standing, root["memory"]["lower_bound_bytes"].get<int64_t>()) << "what stands there is all of the peak";
}

TEST_F(Run, ExplainWritesOnePageThatNeedsNothingElse) {
  ASSERT_EQ(weft(tiny_run("r")).code, 0);
  const Outcome outcome = weft({"explain", "r", "--steps", "2", "--html", "r.html"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const std::string page = read_all(path("r.html"));
  EXPECT_EQ(page.rfind("<!DOCTYPE html>", 0), 0u);
  for (const char* text : {"<h1>r</h1>", "<h2>Curves</h2>", "<h2>Time of a step</h2>", "<h2>Memory</h2>",
                           "class of op</th>", "At the peak", "prefers-color-scheme: dark", "</html>"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
  for (const char* text : {"<script", "<link", "src=", "href=\"http", "@import", "<?xml", "Communication"})
    EXPECT_EQ(page.find(text), std::string::npos) << text;
  for (size_t at = page.find("url("); at != page.npos; at = page.find("url(", at + 1))
    EXPECT_EQ(page[at + 4], '#') << "a part of the page itself";
  size_t pictures = 0;
  for (size_t at = page.find("<svg"); at != page.npos; at = page.find("<svg", at + 1)) ++pictures;
  EXPECT_EQ(pictures, 2u) << "curves and memory";
}

TEST_F(Run, ThePageTakesANameForWhatItIs) {
  const std::string name = "<script>alert('x')&";  // which a directory may have
  ASSERT_EQ(weft(tiny_run(name)).code, 0);
  ASSERT_EQ(weft({"explain", name, "--steps", "1", "--html", "page.html"}).code, 0);
  const std::string page = read_all(path("page.html"));
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_NE(page.find("<h1>&lt;script&gt;alert(&#39;x&#39;)&amp;</h1>"), std::string::npos);
}

TEST_F(Run, ThePageIsWholeOrAbsent) {
  ASSERT_EQ(weft(tiny_run("r")).code, 0);
  expect_error(weft({"explain", "r", "--html", "page.txt"}), 2, "'page.txt' is no .html file");
  EXPECT_NE(weft({"explain", "r", "--steps", "1", "--html", "page.html"}, 4096).code, 0) << "a full disk";
  for (const fs::directory_entry& entry : fs::directory_iterator(directory_))
    EXPECT_EQ(entry.path().string().find("page"), std::string::npos) << entry.path();
}

TEST_F(Run, ExplainSetsTheTimeBesideItsFloor) {
  ASSERT_EQ(weft(tiny_run("r")).code, 0);
  const auto root = nlohmann::json::parse(weft({"explain", "r", "--steps", "2", "--json"}).out);
  EXPECT_GT(root["machine"]["f32"]["flops_per_second"].get<double>(), 0);
  EXPECT_EQ(root["machine"]["memory"].back()["level"], "memory");
  double seconds = 0, floors = 0, before = 1e9;
  for (const auto& one : root["classes"]) {
    EXPECT_NE(one["class"], "other");
    const double above = one["seconds"].get<double>() - one["floor_seconds"].get<double>();
    EXPECT_LE(above, before) << "what loses most comes first";
    before = above;
    seconds += one["seconds"].get<double>();
    floors += one["floor_seconds"].get<double>();
  }
  EXPECT_NEAR(seconds, root["step_seconds"].get<double>(), 1e-9);
  EXPECT_NEAR(floors, root["floor_seconds"].get<double>(), 1e-9);
  EXPECT_GT(floors, 0);
  const std::string text = weft({"explain", "r", "--steps", "2"}).out;
  EXPECT_NE(text.find("this machine, on 1 thread: "), std::string::npos) << text;
  EXPECT_NE(text.find("matrix products"), std::string::npos) << text;
}

TEST_F(Run, ExplainShowsTheMemoryOfThePlanWithoutRunningIt) {
  ASSERT_EQ(weft(tiny_run("r")).code, 0);
  const Outcome text = weft({"explain", "r", "--memory", "--svg", "memory.svg"});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("<- peak"), std::string::npos);
  EXPECT_NE(text.out.find("activations"), std::string::npos);
  EXPECT_EQ(text.out.find("furthest above"), std::string::npos);
  const std::string svg = read_all(path("memory.svg"));
  EXPECT_NE(svg.find("peak"), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
  const auto memory = nlohmann::json::parse(weft({"explain", "r", "--memory", "--json"}).out);
  for (const auto& step : memory["timeline"])
    EXPECT_EQ(step["activations"].get<int64_t>() + step["recomputed"].get<int64_t>() +
                  step["gradients"].get<int64_t>() + step["workspace"].get<int64_t>(),
              step["live_bytes"].get<int64_t>())
        << step;
}

TEST_F(Run, AMemoryLimitIsKeptAndChangesNoWeight) {
  const auto run = [&](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"train",   "--model", "resnet9",   "--data", data(),     "--run", name,
                                          "--batch", "32",      "--threads", "1",      "--epochs", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = weft(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome;
  };
  run("free", {"--quiet"});
  const int64_t planned = json_of("free/summary.json")["planned_total_bytes"];
  const int64_t limit = planned - json_of("free/plan.json")["arena_bytes"].get<int64_t>() / 4;
  const Outcome limited = run("limited", {"--quiet", "--memory-limit", std::to_string(limit)});
  EXPECT_NE(limited.err.find("nodes run twice to keep within"), std::string::npos) << limited.err;
  EXPECT_LE(json_of("limited/summary.json")["planned_total_bytes"].get<int64_t>(), limit);
  const auto weights = [&](const std::string& name) {
    return read_all(path(name + "/checkpoints/best/model.safetensors"));
  };
  EXPECT_FALSE(weights("free").empty());
  EXPECT_EQ(weights("free"), weights("limited"));
  const Outcome explained = weft({"explain", "limited", "--memory"});
  EXPECT_NE(explained.out.find("nodes run twice to save memory"), std::string::npos) << explained.out;
}

TEST_F(Run, AMemoryLimitThatCannotBeMetSaysTheLeastThatCan) {
  const auto refused = [&](const std::string& limit) {
    const Outcome outcome = weft(tiny_run("r", {"--memory-limit", limit}));
    EXPECT_EQ(outcome.code, 2);
    EXPECT_FALSE(fs::exists(path("r")));
    return outcome.err;
  };
  EXPECT_NE(refused("100kB").find("before the first activation"), std::string::npos);
  EXPECT_NE(refused("lots").find("is no amount of memory; write 1.5GB"), std::string::npos);
  const Outcome free = weft({"bench", "mlp", "--seconds", "0", "--json"});
  const auto bench = nlohmann::json::parse(free.out);
  const int64_t other = bench["planned_total_bytes"].get<int64_t>() - bench["planned_peak_bytes"].get<int64_t>();
  const std::string least = weft({"bench", "mlp", "--memory-limit", std::to_string(other + 64)}).err;
  EXPECT_NE(least.find("at the least, with what can be computed twice"), std::string::npos) << least;
  EXPECT_NE(least.find("choose a batch below 16 with accumulate = 2"), std::string::npos) << least;
}

TEST_F(Run, TheLeastMemoryIsTheSameWhateverWasAskedFor) {
  std::vector<std::string> words = {"bench", "resnet9", "--input", "1,28,28",    "--classes",
                                    "10",    "--batch", "16",      "--plan-only"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return weft(more);
  };
  const auto bench = nlohmann::json::parse(with({"--json"}).out);
  const auto total = bench["planned_total_bytes"].get<int64_t>(), arena = bench["planned_peak_bytes"].get<int64_t>();
  const auto least_of = [&](int64_t arena_limit) {
    const std::string error = with({"--memory-limit", std::to_string(total - arena + arena_limit)}).err;
    const size_t begin = error.find(" takes "), end = error.find(" at the least");
    EXPECT_NE(end, std::string::npos) << error;
    return end == std::string::npos ? "" : error.substr(begin + 7, end - begin - 7);
  };
  EXPECT_EQ(least_of(arena / 100), least_of(arena / 7));
}

TEST_F(Run, ListsAreJsonOnDemand) {
  const auto models = nlohmann::json::parse(weft({"models", "--json"}).out);
  const auto ops = nlohmann::json::parse(weft({"ops", "--json"}).out);
  EXPECT_GE(models.size(), 6u);
  for (const auto& model : models) EXPECT_GT(model["parameters"], 0) << model;
  EXPECT_GE(ops.size(), 40u);
  EXPECT_NE(weft({"ops", "conv2d"}).out.find("padding"), std::string::npos);
}

TEST_F(Run, BenchMeasuresBothModes) {
  for (const bool forward : {false, true}) {
    std::vector<std::string> arguments = {"bench", "mlp", "--batch", "8", "--seconds", "0.01", "--json"};
    if (forward) arguments.push_back("--forward");
    const Outcome outcome = weft(arguments);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto result = nlohmann::json::parse(outcome.out);
    EXPECT_GT(result["images_per_second"], 0);
    EXPECT_EQ(result["mode"], forward ? "forward" : "training");
  }
}

TEST_F(Run, BenchAndExplainRunAllOfAnAccumulatedStep) {
  const Outcome bench = weft({"bench", "mlp", "--batch", "8", "--seconds", "0.01", "--json", "--set", "accumulate=3",
                              "--set", "optimizer.name=adamw"});
  ASSERT_EQ(bench.code, 0) << bench.err;
  const auto result = nlohmann::json::parse(bench.out);
  EXPECT_EQ(result["batches_per_step"], 3);
  EXPECT_NEAR(result["samples_per_second"].get<double>() * result["median_step_seconds"].get<double>(), 24, 1e-6);
  ASSERT_EQ(weft(tiny_run("r", {"--set", "accumulate=3", "--set", "optimizer.name=adamw"})).code, 0);
  const Outcome explained = weft({"explain", "r", "--steps", "2", "--json"});
  ASSERT_EQ(explained.code, 0) << explained.err;
  const auto root = nlohmann::json::parse(explained.out);
  std::map<std::string, int64_t> calls;
  for (const auto& kernel : root["kernels"]) calls[kernel["op"]] += kernel["calls"].get<int64_t>();
  EXPECT_GT(calls["adamw_update"], 0) << explained.out;
  EXPECT_EQ(calls["matmul"] % 3, 0);
}

TEST_F(Run, BenchCountsWhatTheModelReads) {
  const Outcome outcome =
      weft({"bench", "transformer_lm", "--input", "8", "--batch", "2", "--seconds", "0.01", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto result = nlohmann::json::parse(outcome.out);
  EXPECT_FALSE(result.contains("images_per_second"));
  EXPECT_NEAR(result["tokens_per_second"].get<double>(), 8 * result["samples_per_second"].get<double>(), 1e-3);
}

TEST_F(Run, StandardErrorThatTakesNothingStopsNoTraining) {
  const std::string begin = "cd " + directory_.string() + " && " WEFT_PROGRAM " train ",
                    end = " >/dev/null 2>/dev/full";
  EXPECT_EQ(std::system(
                (begin + "--model mlp --data " + data() + " --run r --batch 32 --threads 1 --epochs 2" + end).c_str()),
            0);
  EXPECT_EQ(last_checkpoint("r"), "step-00000020");
  EXPECT_EQ(std::system((begin + "--resume r" + end).c_str()), 0) << "a note that nobody reads";
}

TEST_F(Run, PathsMayHoldAnyBytes) {
  const fs::path folder = path("l\xe9");
  fs::create_directory(folder);
  for (const char* name : {"train-images", "train-labels", "test-images", "test-labels"})
    fs::copy(path(name), folder / name);
  std::vector<std::string> arguments = tiny_run("r");
  for (std::string& word : arguments)
    if (word == data()) word = "idx:l\xe9/train-images,l\xe9/train-labels,l\xe9/test-images,l\xe9/test-labels";
  ASSERT_EQ(weft(arguments).code, 0);
  const Outcome evaluated = weft({"eval", "r", "--json"}), resumed = weft({"train", "--resume", "r"});
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_EQ(nlohmann::json::parse(evaluated.out)["samples"], 72);
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  std::string table;
  for (int row = 0; row < 40; ++row) table += std::to_string(row) + (row % 2 == 0 ? ",a\n" : ",b\n");
  write_all(folder / "\xff.csv", table);
  const Outcome trained = weft({"train", "--model", "mlp", "--data", "csv:l\xe9/\xff.csv", "--batch", "8", "--epochs",
                                "1", "--run", "c", "--quiet", "--json"});
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(weft({"eval", "c", "--json"}).code, 0);
  EXPECT_EQ(weft({"compare", "c", "r", "--json"}).code, 0);
}

TEST_F(Run, FilesOfTheUserAreNoLeftovers) {
  fs::create_directory(path("r"));
  write_all(path("r/notes.tmp-5"), "mine");
  expect_error(weft(tiny_run("r")), 2, "'r' is not empty");
  EXPECT_EQ(read_all(path("r/notes.tmp-5")), "mine");
  fs::rename(path("r/notes.tmp-5"), path("r/spec.toml.tmp-5"));
  EXPECT_EQ(weft(tiny_run("r")).code, 0);
  write_all(path("r/notes.tmp-5"), "mine");
  write_all(path("r/plan.json.tmp-5"), "{");
  EXPECT_EQ(weft({"train", "--resume", "r"}).code, 0);
  EXPECT_EQ(read_all(path("r/notes.tmp-5")), "mine");
  EXPECT_FALSE(fs::exists(path("r/plan.json.tmp-5")));
}

TEST_F(Run, WhatHasNoEffectIsSaid) {
  const Outcome outcome = weft(tiny_run("r", {"--set", "optimizer.name=adamw", "--set", "optimizer.momentum=0.5"}));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "weft: optimizer.momentum = 0.5 with optimizer.name = 'adamw' has no effect\n");
}

TEST_F(Run, PassesCanBeLeftOutOfBenchAndExplain) {
  ASSERT_EQ(weft(tiny_run("r")).code, 0);
  const Outcome bench =
      weft({"bench", "mlp", "--batch", "8", "--seconds", "0.01", "--json", "--without", "fuse_elementwise"});
  ASSERT_EQ(bench.code, 0) << bench.err;
  const auto passes = nlohmann::json::parse(bench.out)["passes"];
  EXPECT_GE(passes.size(), 6u);
  for (const auto& pass : passes) EXPECT_NE(pass["pass"], "fuse_elementwise");
  const Outcome all = weft({"explain", "r", "--passes"}),
                some = weft({"explain", "r", "--passes", "--without", "fuse_elementwise"});
  EXPECT_NE(all.out.find("fuse_elementwise"), std::string::npos) << all.err;
  EXPECT_NE(some.out.find("mark_in_place"), std::string::npos) << some.err;
  EXPECT_EQ(some.out.find("fuse_elementwise"), std::string::npos);
}

TEST_F(Run, GraphAfterAllIsWhatTheRunExecutes) {
  ASSERT_EQ(weft(tiny_run("r")).code, 0);
  const Outcome graph = weft({"graph", "r", "--after", "all", "--threads", "1"});
  ASSERT_EQ(graph.code, 0) << graph.err;
  EXPECT_EQ(graph.out, read_all(path("r/graph.weft")));
}

TEST_F(Run, GraphOfARunTakesEveryOption) {
  ASSERT_EQ(weft(tiny_run("r")).code, 0);
  const std::string graph = weft({"graph", "r", "--set", "optimizer.name=adamw", "--classes", "7"}).out;
  EXPECT_NE(graph.find("adamw_update"), std::string::npos);
  EXPECT_NE(graph.find("f32[32,7]"), std::string::npos);
}

TEST_F(Run, GraphReadsWhatItPrints) {
  const std::string text = weft({"graph", "lenet5", "--batch", "4"}).out;
  write_all(path("g.weft"), text);
  EXPECT_EQ(weft({"graph", "g.weft"}).out, text);
  EXPECT_EQ(weft({"graph", "g.weft", "--after", "fold_constants"}).out,
            weft({"graph", "lenet5", "--batch", "4", "--after", "fold_constants"}).out);
}

TEST_F(Run, GraphPrintsEveryStage) {
  const Outcome built = weft({"graph", "mlp", "--batch", "4"});
  ASSERT_EQ(built.code, 0) << built.err;
  EXPECT_NE(built.out.find("sgd_update"), std::string::npos);
  EXPECT_EQ(weft({"graph", "mlp", "--inference"}).out.find("sgd_update"), std::string::npos);
  std::istringstream passes(weft({"graph", "--list-passes"}).out);
  std::string line;
  std::getline(passes, line);  // titles
  std::getline(passes, line);  // rule
  int count = 0;
  for (; std::getline(passes, line); ++count) {
    const std::string pass = line.substr(0, line.find(' '));
    EXPECT_EQ(weft({"graph", "mlp", "--batch", "4", "--after", pass}).code, 0) << pass;
    EXPECT_EQ(weft({"graph", "mlp", "--batch", "4", "--without", pass}).code, 0) << pass;
  }
  EXPECT_GE(count, 7);
}

}  // namespace
}  // namespace weft::cli_tests
