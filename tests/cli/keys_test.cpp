// weft keys: which keys a pattern chooses, and what is said to names from other programs.
#include "tests/cli/program.h"

namespace weft::cli_tests {
namespace {

class Keys : public ProgramTest {
 protected:
  /// The first words of the rows.
  std::vector<std::string> listed(const std::vector<std::string>& words) {
    std::vector<std::string> arguments{"keys"}, keys;
    arguments.insert(arguments.end(), words.begin(), words.end());
    const Outcome outcome = weft(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    note_ = outcome.err;
    std::istringstream lines(outcome.out);
    int number = 0;
    for (std::string line; std::getline(lines, line);)
      if (++number > 2) keys.push_back(line.substr(0, line.find(' ')));
    return keys;
  }
  using Names = std::vector<std::string>;
  std::string note_;
};

TEST_F(Keys, AllHaveKindDefaultAndHelp) {
  const std::string out = weft({"keys", "optimizer.momentum"}).out;
  for (const char* text : {"values", "default", "what it is for", "a number from 0 to", "0.9"})
    EXPECT_NE(out.find(text), std::string::npos) << text << "\n" << out;
  EXPECT_GT(listed({}).size(), 100u);
}

TEST_F(Keys, ATableHasItsKeysAlone) { EXPECT_EQ(listed({"clip"}), (Names{"clip.norm", "clip.value"})); }

TEST_F(Keys, APatternMatchesNames) {
  EXPECT_EQ(listed({"*_steps"}),
            (Names{"max_steps", "schedule.warmup_steps", "checkpoint.every_steps", "evaluation.every_steps"}));
  EXPECT_EQ(listed({"label_sm"}), Names{"loss.label_smoothing"}) << "a part of a name";
}

TEST_F(Keys, NamesFromOtherProgramsAreAnsweredWithTheKey) {
  EXPECT_EQ(listed({"lr"}), Names{"optimizer.learning_rate"});
  EXPECT_EQ(note_, "weft: 'lr' is called 'optimizer.learning_rate' here\n");
  EXPECT_EQ(listed({"wd"}), Names{"optimizer.weight_decay"});
  EXPECT_EQ(listed({"bs"}), Names{"batch"});
}

TEST_F(Keys, UnknownKeyNamesTheNearest) {
  expect_error(
      weft({"keys", "optimizer.lerning_rate"}), 2,
      "there is no key 'optimizer.lerning_rate'; did you mean 'optimizer.learning_rate'?; `weft keys` lists all");
  expect_error(weft({"keys", "zzzz*"}), 2, "there is no key 'zzzz*'; `weft keys` lists all");
}

}  // namespace
}  // namespace weft::cli_tests
