// What a user can mistype, and what the program says to it.
#include <regex>

#include "tests/cli/program.h"

namespace weft::cli_tests {
namespace {

class Usage : public ProgramTest {};

TEST_F(Usage, NoCommand) { expect_error(weft({}), 2, "no command given; see `weft --help`"); }

TEST_F(Usage, UnknownCommandNamesTheNearest) {
  expect_error(weft({"trian"}), 2, "unknown command 'trian'; did you mean 'train'?");
}

TEST_F(Usage, UnknownOptionNamesTheNearest) {
  expect_error(weft({"train", "--epoch", "3"}), 2, "unknown option '--epoch'; did you mean '--epochs'?");
}

TEST_F(Usage, HelpAndVersionGoToStandardOutput) {
  const Outcome help = weft({"--help"}), version = weft({"--version"}), train_help = weft({"train", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("explain"), std::string::npos);
  EXPECT_EQ(help.out.find("check-steps"), std::string::npos) << "hidden";
  EXPECT_EQ(help.err, "");
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(std::regex_match(version.out, std::regex("weft [0-9]+\\.[0-9]+\\.[0-9]+\n"))) << version.out;
  EXPECT_EQ(train_help.code, 0);
  EXPECT_NE(train_help.out.find("--resume"), std::string::npos);
}

TEST_F(Usage, NothingToTrain) { expect_error(weft({"train", "--data", data()}), 2, "no model given"); }

TEST_F(Usage, NothingToTrainOn) {
  expect_error(weft({"train", "--model", "lenet5"}), 2, "there are no data to train on: give a recipe");
}

TEST_F(Usage, MoreThreadsThanCoresAreAsManyAsCores) {
  const Outcome outcome = weft(
      {"train", "--model", "mlp", "--data", data(), "--run", "r", "--threads", "1000", "--max-steps", "1", "--quiet"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("1000 threads on "), std::string::npos) << outcome.err;
}

TEST_F(Usage, UnknownModelNamesTheNearest) {
  expect_error(weft({"train", "--model", "resnet81", "--data", data()}), 2, "did you mean 'resnet");
}

TEST_F(Usage, UnknownModelOption) {
  expect_error(weft(tiny_run("r", {"--set", "model.colour=blue"})), 2, "colour");
  EXPECT_FALSE(fs::exists(path("r")));
}

TEST_F(Usage, UnknownDataNamesTheNearest) {
  expect_error(weft({"train", "--model", "mlp", "--data", "fashion-mnits"}), 2, "did you mean 'fashion-mnist'?");
}

TEST_F(Usage, UnknownKeyOfSet) {
  expect_error(weft(tiny_run("r", {"--set", "optimizer.lerning_rate=1"})), 2,
               "unknown key 'optimizer.lerning_rate'; did you mean 'optimizer.learning_rate'?");
}

TEST_F(Usage, UnknownKeyThatIsNearNoneListsItsSection) {
  const Outcome outcome = weft(tiny_run("r", {"--set", "optimizer.lr=1"}));
  expect_error(outcome, 2, "unknown key 'optimizer.lr'; known: optimizer.name, optimizer.learning_rate, ");
  EXPECT_EQ(outcome.err.find("schedule."), std::string::npos) << outcome.err;
}

TEST_F(Usage, UnknownKeyOfRecipe) {
  write_all(path("r.toml"), "model = 'mlp'\nepoch = 3\n");
  expect_error(weft({"train", "r.toml"}), 2, "r.toml:2: unknown key 'epoch'; did you mean 'epochs'?");
}

TEST_F(Usage, RecipeThatIsNoToml) {
  write_all(path("r.toml"), "model = mlp\n");
  expect_error(weft({"train", "r.toml"}), 2, "r.toml:1: is no TOML");
}

TEST_F(Usage, MissingRecipe) { expect_error(weft({"train", "absent.toml"}), 1, "cannot open 'absent.toml'"); }

TEST_F(Usage, UnknownRecipeNamesTheNearest) {
  expect_error(weft({"train", "digit_line"}), 2,
               "there is no recipe 'digit_line', and no such file; did you mean 'digit_lines'?");
}

TEST_F(Usage, NegativeBatch) {
  expect_error(weft(tiny_run("r", {"--set", "batch=-1"})), 2, "batch = -1 is out of range: 1 to 65536");
}

TEST_F(Usage, AbsurdBatch) { expect_error(weft(tiny_run("r", {"--set", "batch=100000000"})), 2, "out of range"); }

TEST_F(Usage, EpochsThatAreNoNumber) { EXPECT_EQ(weft({"train", "--model", "mlp", "--epochs", "many"}).code, 2); }

TEST_F(Usage, LearningRateNaN) {
  expect_error(weft(tiny_run("r", {"--set", "optimizer.learning_rate=nan"})), 2, "optimizer.learning_rate = nan");
}

TEST_F(Usage, UnknownPrecision) {
  expect_error(weft(tiny_run("r", {"--set", "precision=f8"})), 2, "choose one of: f32");
}

TEST_F(Usage, ResumeTakesNoOtherOptions) {
  expect_error(weft({"train", "--resume", "r", "--model", "mlp"}), 2, "--resume takes --model from the run directory");
}

TEST_F(Usage, UnknownModelIsOneMessageEverywhere) {
  const std::string message = "there is no model 'resnet51' (`weft models` lists them); did you mean 'resnet50'?";
  expect_error(weft({"bench", "resnet51"}), 2, message);
  expect_error(weft({"graph", "resnet51"}), 2, message);
  expect_error(weft({"models", "resnet51"}), 2, message);
  expect_error(weft({"train", "--model", "resnet51", "--data", data()}), 2, message);
}

TEST_F(Usage, BenchWithNonsenseInput) {
  expect_error(weft({"bench", "resnet18", "--input", "3x32x32"}), 2, "--input '3x32x32': wants whole numbers");
  expect_error(weft({"bench", "resnet18", "--input", "3,,32"}), 2, "--input '3,,32': wants whole numbers");
  expect_error(weft({"bench", "resnet18", "--input", "3,-32,32"}), 2, "--input '3,-32,32': wants whole numbers");
}

TEST_F(Usage, BenchWithAnInputThatDoesNotFit) {
  expect_error(weft({"bench", "resnet18", "--input", "7"}), 1, "[resnet18] wants images (channels,height,width)");
}

TEST_F(Usage, AFolderHidesNoRecipe) {
  fs::create_directories(path("photos/dark"));
  const Outcome outcome = weft({"train", "photos", "--run", "r"});
  expect_error(outcome, 1, "[images]");
  EXPECT_EQ(outcome.err.find("cannot open"), std::string::npos) << outcome.err;
}

TEST_F(Usage, UnknownOpNamesTheNearest) { expect_error(weft({"ops", "conv2"}), 2, "did you mean 'conv2d'?"); }

TEST_F(Usage, UnknownPassNamesTheNearest) {
  expect_error(weft({"graph", "mlp", "--after", "fold_constant"}), 2, "did you mean 'fold_constants'?");
}

TEST_F(Usage, GraphOfANameThatIsTooLongForAPath) {
  expect_error(weft({"graph", std::string(300, 'a')}), 2, "there is no model 'aaa");
}

TEST_F(Usage, UnknownPassToLeaveOutNamesTheNearest) {
  expect_error(weft({"bench", "mlp", "--without", "fold_constant"}), 2, "did you mean 'fold_constants'?");
}

TEST_F(Usage, GraphOfNothing) { expect_error(weft({"graph"}), 2, "wants a model"); }

TEST_F(Usage, RealNumbersThatAreNone) {
  const std::vector<std::vector<std::string>> all = {
      {"simulate", "lenet5", "--cluster", "p3_16xlarge", "--calibration", "nan"},
      {"simulate", "lenet5", "--cluster", "p3_16xlarge", "--weeks", "nan"},
      {"simulate", "lenet5", "--cluster", "p3_16xlarge", "--device-hours", "inf"},
      {"rates", "--ops", "--seconds", "nan"},
      {"bench", "lenet5", "--seconds", "nan"},
      {"compare", "a", "b", "--accuracy", "nan"},
      {"plot", "a", "--smoothing", "nan"},
      {"predict", "a", "b", "--top-p", "nan"}};
  for (const std::vector<std::string>& words : all)
    expect_error(weft(words), 2, words[words.size() - 2] + ": '" + words.back() + "' is no number from ");
}

TEST_F(Usage, OneArgumentTooMany) {
  expect_error(weft({"ops", "conv2d", "matmul"}), 2, "'matmul' is one argument too many");
}

}  // namespace
}  // namespace weft::cli_tests
