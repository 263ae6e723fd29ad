// What shells complete with the scripts of `weft completion`.
#include <poll.h>
#include <pty.h>

#include <regex>
#include <set>

#include "tests/cli/program.h"

namespace weft::cli_tests {
namespace {

/// Calls the function that the script has registered, with the words as readline cuts them.
constexpr const char* kBashHarness = R"(
PATH=$(dirname "$1"):$PATH
source <(weft completion bash)
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDS=() rest=$2
while [[ -n $rest ]]; do
  if [[ $rest =~ ^[[:space:]]+ ]]; then
    rest=${rest:${#BASH_REMATCH}}
    if [[ -z $rest ]]; then COMP_WORDS+=(""); fi
  elif [[ $rest =~ ^[=:]+ ]]; then
    COMP_WORDS+=("$BASH_REMATCH")
    rest=${rest:${#BASH_REMATCH}}
    if [[ -z $rest ]]; then COMP_WORDS+=(""); fi
  elif [[ $rest =~ ^(\\.|[^[:space:]=:])+ ]]; then
    COMP_WORDS+=("$BASH_REMATCH")
    rest=${rest:${#BASH_REMATCH}}
  fi
done
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
words=$(complete -p weft)
words=${words#*-F }
${words%% *}
printf '%s\n' "${COMPREPLY[@]}"
)";

/// compadd stands for zsh's own, and prints the array that it is given.
constexpr const char* kZshHarness = R"(
PATH=$1:h:$PATH
path=(${1:h} $path)
compdef() { : }
compset() { false }
source =(weft completion zsh)
compadd() { local array=${@[-1]}; print -rl -- ${(P)array} }
words=(${(z)2})
[[ $2 == *' ' ]] && words+=('')
CURRENT=$#words PREFIX=$words[-1]
_weft
)";

class Completion : public ProgramTest {
 protected:
  std::string run_shell(const std::vector<std::string>& words) const {
    std::string command = "cd '" + directory_.string() + "' &&";
    for (const std::string& word : words) {
      std::string quoted = " '";
      for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
      command += quoted + "'";
    }
    command += " 2>&1";
    std::string output;
    FILE* const pipe = popen(command.c_str(), "r");
    char buffer[4096];
    for (size_t bytes = 0; (bytes = fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, bytes);
    EXPECT_EQ(pclose(pipe), 0) << output;
    return output;
  }
  static bool has_program(const std::string& name) {
    return std::system(("command -v " + name + " > /dev/null").c_str()) == 0;
  }
  static std::set<std::string> lines_of(const std::string& text) {
    std::set<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.insert(line);
    return lines;
  }
  std::set<std::string> bash(const std::string& line) const {
    return lines_of(run_shell({"bash", "--norc", "-c", kBashHarness, "bash", WEFT_PROGRAM, line}));
  }
  using Words = std::set<std::string>;

  /// What `weft` is called with once somebody has typed `keys` into a shell that completes, and Enter. HOME is home/.
  /// Typed for real, into a terminal: what a shell makes of an answer is nothing that a script can ask it.
  std::vector<std::string> typed(const std::string& shell, const std::string& keys) {
    fs::create_directories(path("bin"));
    write_all(path("bin/weft"),
              "#!/bin/sh\n"
              "case $1 in completion | complete-words) exec '" WEFT_PROGRAM
              "' \"$@\" ;; esac\n"
              "printf '%s\\n' \"$@\" > \"$ARGUMENTS.new\" && mv \"$ARGUMENTS.new\" \"$ARGUMENTS\"\n");
    fs::permissions(path("bin/weft"), fs::perms::owner_all);
    fs::remove(path("arguments"));
    int terminal = -1;
    const std::string directory = directory_.string();
    const pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
    if (pid == 0) {
      setenv("PATH", (directory + "/bin:" + getenv("PATH")).c_str(), 1);
      setenv("HOME", (directory + "/home").c_str(), 1);
      setenv("ARGUMENTS", (directory + "/arguments").c_str(), 1);
      setenv("INPUTRC", "/dev/null", 1);
      setenv("TERM", "dumb", 1);
      if (chdir(directory.c_str()) != 0) _exit(126);
      if (shell == "zsh") execlp("zsh", "zsh", "-f", "-i", nullptr);
      execlp("bash", "bash", "--norc", "--noprofile", "-i", nullptr);
      _exit(127);
    }
    std::string shown;
    const auto type = [&](const std::string& text) {
      EXPECT_EQ(write(terminal, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    };
    const auto wait_for = [&](const auto& condition) {
      for (int tries = 0; tries < 400 && !condition(); ++tries) {
        pollfd waiting{terminal, POLLIN, 0};
        if (poll(&waiting, 1, 50) <= 0) continue;
        char buffer[4096];
        const ssize_t bytes = read(terminal, buffer, sizeof buffer);
        if (bytes <= 0) break;
        shown.append(buffer, static_cast<size_t>(bytes));
      }
      EXPECT_TRUE(condition()) << shown;
    };
    type(shell == "zsh" ? "autoload -Uz compinit; compinit -u -D; . =(weft completion zsh); echo rea''dy\r"
                        : "source <(weft completion bash); echo rea''dy\r");
    wait_for([&] { return shown.find("ready") != std::string::npos; });
    type(keys);
    type("\r");
    wait_for([&] { return fs::exists(path("arguments")); });
    kill(pid, SIGKILL);
    close(terminal);
    waitpid(pid, nullptr, 0);
    std::vector<std::string> arguments;
    std::istringstream lines(read_all(path("arguments")));
    for (std::string line; std::getline(lines, line);) arguments.push_back(line);
    return arguments;
  }
  /// Names that a shell would take for something else, each of which begins with a letter of its own.
  void make_odd_runs(const fs::path& folder) {
    for (const char* name : kOddNames) {
      fs::create_directories(folder / name);
      write_all(folder / name / "spec.toml", "");
    }
  }
  static constexpr const char* kOddNames[] = {"a$(touch EXECUTED)", "b`touch EXECUTED`", "c it's",  "d \"so\" \\n",
                                              "e;touch EXECUTED",   "f*?[x]{1,2}",       "g!!#~ h", "i:j=k@l"};
};

TEST_F(Completion, BashCompletesCommands) {
  EXPECT_EQ(bash("weft tr"), Words{"train"});
  EXPECT_EQ(bash("weft cluster "), (Words{"probe", "bench"}));
  EXPECT_EQ(bash("weft man rec"), Words{"recipes"});
}

TEST_F(Completion, BashCompletesFlagsOfTheCommand) {
  EXPECT_EQ(bash("weft train --res"), Words{"--resume"});
  EXPECT_EQ(bash("weft explain --res"), Words{""});
  EXPECT_EQ(bash("weft cluster bench --c"), (Words{"--collective", "--costs"}));
}

TEST_F(Completion, BashCompletesModelsBehindTheirFlag) {
  const Words expected{"resnet18", "resnet101", "resnet152"};
  EXPECT_EQ(bash("weft train --model resnet1"), expected);
  EXPECT_EQ(bash("weft train --model=resnet1"), expected);
}

TEST_F(Completion, BashCompletesRecipesAndTheirFiles) {
  write_all(path("dem.toml"), "");
  EXPECT_EQ(bash("weft train dem"), (Words{"demo", "dem.toml"}));
}

TEST_F(Completion, BashCompletesKeysAndTheirValues) {
  EXPECT_EQ(bash("weft train --set optimizer.na"), Words{"optimizer.name="});
  EXPECT_EQ(bash("weft train --set optimizer.name=adam"), (Words{"adam", "adamw"}));
  EXPECT_EQ(bash("weft train --set optimizer.nesterov="), (Words{"true", "false"}));
  EXPECT_EQ(bash("weft train --model mlp --set model.hidden"), Words{"model.hidden="});
  EXPECT_EQ(bash("weft data --set optimizer.na"), Words{""}) << "only keys of [augment]";
  EXPECT_EQ(bash("weft keys optimizer.na"), Words{"optimizer.name"});
}

TEST_F(Completion, BashCompletesChoicesOfFlags) {
  EXPECT_EQ(bash("weft plot --x "), (Words{"step", "epoch", "seconds"}));
  EXPECT_EQ(bash("weft train --precision "), (Words{"f32", "bf16", "f16", "auto"}));
}

TEST_F(Completion, BashCompletesKindsOfDataAndTheirFiles) {
  EXPECT_EQ(bash("weft train --data fash"), Words{"fashion-mnist"});
  EXPECT_EQ(bash("weft train --data cif"), Words{"cifar10:"});
  EXPECT_EQ(bash("weft data idx:train-i"), Words{"train-images"});
}

TEST_F(Completion, BashCompletesRunsWhereARunIsWanted) {
  fs::create_directories(path("runs/a run"));
  fs::create_directories(path("runs/other"));
  write_all(path("runs/a run/spec.toml"), "");
  write_all(path("rows.csv"), "");
  EXPECT_EQ(bash("weft eval r"), Words{"runs/"}) << "no files";
  EXPECT_EQ(bash("weft eval runs/"), (Words{"runs/a\\ run", "runs/other/"}));
  EXPECT_EQ(bash("weft eval runs/a\\ "), Words{"runs/a\\ run"});
  EXPECT_EQ(bash("weft predict runs/a\\ run ro"), Words{"rows.csv"});
  EXPECT_EQ(bash("weft plot runs/other runs/a"), Words{"runs/a\\ run"}) << "one of several";
}

TEST_F(Completion, BashWritesOddNamesSoThatTheyAreOneWordAndNothingIsExecuted) {
  make_odd_runs(path("runs"));
  for (const char* const opened : {"", "\"", "'"})
    for (const std::string name : kOddNames)
      EXPECT_EQ(typed("bash", "weft eval " + std::string(opened) + "runs/" + name[0] + "\t"),
                (std::vector<std::string>{"eval", "runs/" + name}))
          << opened;
  EXPECT_FALSE(fs::exists(path("EXECUTED")));
}

TEST_F(Completion, BashWritesOddNamesOfTheHome) {
  make_odd_runs(path("home/runs"));
  for (const std::string name : kOddNames)
    EXPECT_EQ(typed("bash", std::string("weft eval ~/ru\t") + name[0] + "\t"),
              (std::vector<std::string>{"eval", path("home/runs").string() + "/" + name}));
  EXPECT_FALSE(fs::exists(path("EXECUTED")));
}

TEST_F(Completion, BashGoesOnInsideOfOddNames) {
  make_odd_runs(path("runs"));
  const std::vector<std::string> expected{"eval", "runs/d \"so\" \\n"};
  EXPECT_EQ(typed("bash", R"(weft eval runs/d\ \"s)"
                          "\t"),
            expected);
  EXPECT_EQ(typed("bash", R"(weft eval "runs/d \"s)"
                          "\t"),
            expected);
  EXPECT_EQ(typed("bash", R"(weft eval 'runs/d "s)"
                          "\t"),
            expected);
  EXPECT_EQ(typed("bash", R"(weft eval runs/"d \""s)"
                          "\t"),
            expected);
  EXPECT_EQ(typed("bash", "weft eval runs/i:j\t"), (std::vector<std::string>{"eval", "runs/i:j=k@l"}));
  EXPECT_EQ(typed("bash", "weft eval \"runs/i:j\t"), (std::vector<std::string>{"eval", "runs/i:j=k@l"}));
}

TEST_F(Completion, ZshWritesOddNamesSoThatTheyAreOneWordAndNothingIsExecuted) {
  if (!has_program("zsh")) GTEST_SKIP() << "zsh is not installed";
  make_odd_runs(path("home/runs"));
  make_odd_runs(path("runs"));
  for (const std::string name : kOddNames) {
    EXPECT_EQ(typed("zsh", std::string("weft eval ~/ru\t") + name[0] + "\t"),
              (std::vector<std::string>{"eval", path("home/runs").string() + "/" + name}));
    EXPECT_EQ(typed("zsh", std::string("weft eval 'runs/") + name[0] + "\t"),
              (std::vector<std::string>{"eval", "runs/" + name}));
  }
  EXPECT_FALSE(fs::exists(path("EXECUTED")));
}

TEST_F(Completion, BashCompletesWhatIsLaunched) {
  EXPECT_EQ(bash("weft launch -n 2 -- "), Words{"train"});
  EXPECT_EQ(bash("weft launch -n 2 -- train --model mobile"), Words{"mobilenet_v2"});
}

TEST_F(Completion, OffersWhatHelpLists) {
  const std::string help = weft({"train", "--help"}).out;
  std::set<std::string> listed, offered;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {  // those that begin a line
    std::smatch found;
    if (!std::regex_search(line, found, std::regex("^  (-., ?)?((--[a-z][a-z-]*,?)+)"))) continue;
    std::istringstream names(found[2]);
    for (std::string name; std::getline(names, name, ',');) listed.insert(name);
  }
  std::istringstream words(weft({"complete-words", "train", "--"}).out);
  for (std::string line; std::getline(words, line);) offered.insert(line.substr(0, line.find('\t')));
  EXPECT_GT(listed.size(), 25u) << help;
  for (const std::string& one : listed) EXPECT_TRUE(offered.count(one)) << one;
  EXPECT_EQ(listed.size(), offered.size());
}

TEST_F(Completion, WordsThatMeanNothingGetNoAnswerAndNoError) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {}, {"nothing", "--what", ""}, {"train", "--set", "a.b=", ""}, {"train", "--", "-"}, {"eval", "/none/"}}) {
    std::vector<std::string> arguments{"complete-words"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    const Outcome outcome = weft(arguments);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
  }
}

TEST_F(Completion, ZshCompletesTheSame) {
  if (!has_program("zsh")) GTEST_SKIP() << "zsh is not installed";
  write_all(path("_weft"), weft({"completion", "zsh"}).out);
  EXPECT_EQ(run_shell({"zsh", "-n", "_weft"}), "");
  const auto zsh = [&](const std::string& line) {
    return lines_of(run_shell({"zsh", "-f", "-c", kZshHarness, "zsh", WEFT_PROGRAM, line}));
  };
  EXPECT_EQ(zsh("weft train --model resnet1"), (Words{"resnet18", "resnet101", "resnet152"}));
  EXPECT_EQ(zsh("weft train --set optimizer.name=adam"), (Words{"optimizer.name=adam", "optimizer.name=adamw"}));
  EXPECT_EQ(zsh("weft cluster "), (Words{"probe", "bench"}));
}

TEST_F(Completion, FishCompletesTheSame) {
  if (!has_program("fish")) GTEST_SKIP() << "fish is not installed";
  write_all(path("weft.fish"), weft({"completion", "fish"}).out);
  EXPECT_EQ(run_shell({"fish", "-n", "weft.fish"}), "");
  const auto fish = [&](const std::string& line) {
    const std::string folder = fs::path(WEFT_PROGRAM).parent_path().string();
    std::set<std::string> words;
    for (const std::string& answer :
         lines_of(run_shell({"env", "HOME=" + directory_.string(), "fish", "--no-config", "-c",
                             "set -x PATH " + folder + " $PATH; source weft.fish; complete -C '" + line + "'"})))
      words.insert(answer.substr(0, answer.find('\t')));
    return words;
  };
  EXPECT_EQ(fish("weft train --model resnet1"), (Words{"resnet18", "resnet101", "resnet152"}));
  EXPECT_EQ(fish("weft train --set optimizer.name=adam"), (Words{"optimizer.name=adam", "optimizer.name=adamw"}));
  EXPECT_EQ(fish("weft cluster "), (Words{"probe", "bench"}));
}

TEST_F(Completion, UnknownShellsAreRefused) { expect_error(weft({"completion", "tcsh"}), 2, "tcsh"); }

}  // namespace
}  // namespace weft::cli_tests
