// Manual pages: what they hold, and that man's formatter finds nothing to say about them.
#include <cstdio>

#include "tests/cli/program.h"

namespace weft::cli_tests {
namespace {

using Man = ProgramTest;

TEST_F(Man, ThePageOfACommandHasItsFlagsAndArguments) {
  const Outcome page = weft({"man", "explain"});
  ASSERT_EQ(page.code, 0) << page.err;
  EXPECT_EQ(page.out.rfind(".TH WEFT\\-EXPLAIN 1 ", 0), 0u) << page.out.substr(0, 80);
  for (const char* text :
       {"\\fB\\-\\-memory\\-limit\\fR", "\n\\fIRUN\\fR\n", "weft\\-explain \\- Show where", ".SH EXIT STATUS"})
    EXPECT_NE(page.out.find(text), std::string::npos) << text;
}

TEST_F(Man, ThePageOfKeysHasWhatKeysPrints) {
  const std::string page = weft({"man", "keys"}).out;
  for (const char* key : {"\\fBoptimizer.learning_rate\\fR = ", "\\fBaugment.flip\\fR = ", "Default: 128."})
    EXPECT_NE(page.find(key), std::string::npos) << key;
}

TEST_F(Man, AllPagesAreWrittenAndFormattedWithoutAWarning) {
  ASSERT_EQ(weft({"man", "--directory", "man1"}).code, 0);
  for (const char* name : {"weft.1", "weft-train.1", "weft-cluster.1", "weft-man.1"})
    EXPECT_TRUE(fs::exists(path("man1") / name)) << name;
  EXPECT_FALSE(fs::exists(path("man1/weft-check-steps.1"))) << "hidden";
  if (std::system("command -v groff > /dev/null") != 0) GTEST_SKIP() << "groff is not installed";
  int pages = 0;
  for (const fs::directory_entry& page : fs::directory_iterator(path("man1"))) {
    const std::string log = path("log").string();
    const int code = std::system(("groff -man -ww -z '" + page.path().string() + "' > '" + log + "' 2>&1").c_str());
    EXPECT_EQ(code, 0) << page.path();
    EXPECT_EQ(read_all(log), "") << page.path();
    ++pages;
  }
  EXPECT_GT(pages, 20);
}

TEST_F(Man, UnknownCommandNamesTheNearest) {
  expect_error(weft({"man", "trian"}), 2, "there is no command 'trian'; did you mean 'train'?");
}

TEST_F(Man, TheDirectoryIsOfAllPages) {
  expect_error(weft({"man", "train", "--directory", "d"}), 2, "leave 'train' away");
  EXPECT_FALSE(fs::exists(path("d")));
}

}  // namespace
}  // namespace weft::cli_tests
