// weft completion: scripts with which shells complete this program's command lines. They ask the program itself.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "weft/base/error.h"
#include "weft/cli/command.h"
#include "weft/cli/complete_words.h"

namespace weft::cli {

namespace {

/// Bash cuts words at ":", "=" and quotes: they are joined again and read as the shell reads them, and what readline
/// does not replace (`cut`) is taken off the answers. An answer is the name of a file that anybody may have made: it is
/// written so that in the place where it comes to stand, inside of quotes or not, the shell reads it as it is.
constexpr const char* kBashScript =
    R"(# Completion of @PROGRAM@ for bash, made by `@PROGRAM@ completion bash`. To use it in this shell:
#   source <(@PROGRAM@ completion bash)
@FUNCTION@() {
  local rest=${COMP_LINE:0:COMP_POINT} piece index at one quote plain before cut answer
  local -a words=()
  for ((index = 0; index <= COMP_CWORD; ++index)); do
    piece=${COMP_WORDS[index]}
    if ((index == 0)) || [[ $rest == [[:space:]]* ]]; then words+=(""); fi
    rest=${rest#"${rest%%[![:space:]]*}"}
    if ((index == COMP_CWORD)); then piece=$rest; fi
    words[${#words[@]}-1]+=$piece
    rest=${rest#"$piece"}
  done
  for ((index = 0; index < ${#words[@]}; ++index)); do
    piece=${words[index]} quote='' plain='' cut=''
    for ((at = 0; at < ${#piece}; ++at)); do
      one=${piece:at:1}
      if [[ -n $quote && $one == "$quote" ]]; then
        quote='' cut=$before
      elif [[ $quote == "'" ]]; then
        plain+=$one
      elif [[ $one == '\' && ( -z $quote || ${piece:at+1:1} == [\$\`\"\\] ) ]]; then
        ((++at))
        plain+=${piece:at:1}
      elif [[ -n $quote ]]; then
        plain+=$one
      elif [[ $one == [\"\'] ]]; then
        quote=$one before=$cut cut=$plain
      else
        plain+=$one
        if [[ $COMP_WORDBREAKS == *"$one"* ]]; then cut=$plain; fi
      fi
    done
    words[index]=$plain
  done
  COMPREPLY=()
  while IFS= read -r answer; do
    answer=${answer%%$'\t'*}
    answer=${answer#"$cut"}
    piece=''
    if [[ $quote == "'" ]]; then
      answer=${answer//\'/"'\\''"}
    elif [[ $quote == '"' ]]; then
      for ((at = 0; at < ${#answer}; ++at)); do
        one=${answer:at:1}
        case $one in
          [\$\`\"\\]) piece+=\\$one ;;
          !) piece+=\"\'!\'\" ;;
          *) piece+=$one ;;
        esac
      done
      answer=$piece
    elif [[ -n $answer ]]; then
      if [[ $answer == '~/'* ]]; then piece='~/' answer=${answer:2}; fi
      if [[ -n $answer ]]; then printf -v answer %q "$answer"; fi
      answer=$piece$answer
    fi
    COMPREPLY+=("$answer")
  done < <("${words[0]/#\~/$HOME}" @COMPLETE@ "${words[@]:1}" 2>/dev/null)
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/:] ]]; then compopt -o nospace 2>/dev/null; fi
  return 0
}
complete -F @FUNCTION@ @PROGRAM@
)";

constexpr const char* kZshScript = R"(#compdef @PROGRAM@
# Completion of @PROGRAM@ for zsh, made by `@PROGRAM@ completion zsh`: put it as _@PROGRAM@ into a folder of $fpath, or
#   source <(@PROGRAM@ completion zsh)
@FUNCTION@() {
  local answer word shown home begun_word=${(Q)PREFIX}
  local -a whole whole_shown begun begun_shown
  # What compadd adds it quotes; "~/" means the home only where it is not quoted.
  if compset -P '\~/'; then home='~/'; fi
  while IFS= read -r answer; do
    word=${answer%%$'\t'*}
    shown=$word
    word=${word#"$home"}
    if [[ $answer == *$'\t'* ]]; then shown="$word  -- ${answer#*$'\t'}"; fi
    if [[ $word == *[=/:] ]]; then
      begun+=("$word") begun_shown+=("$shown")
    else
      whole+=("$word") whole_shown+=("$shown")
    fi
  done < <(${(Q)~words[1]} @COMPLETE@ "${(@Q)words[2,CURRENT-1]}" "$begun_word" 2>/dev/null)
  (( $#whole )) && compadd -l -d whole_shown -a whole
  (( $#begun )) && compadd -l -S '' -d begun_shown -a begun
  (( $#whole + $#begun ))
}
if [[ $funcstack[1] == @FUNCTION@ ]]; then
  @FUNCTION@ "$@"
else
  compdef @FUNCTION@ @PROGRAM@
fi
)";

constexpr const char* kFishScript =
    R"(# Completion of @PROGRAM@ for fish, made by `@PROGRAM@ completion fish`. To use it in this shell:
#   @PROGRAM@ completion fish | source
function @FUNCTION@
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l program (string replace -r '^~' $HOME -- $words[1])
    $program @COMPLETE@ $words[2..-1] "$word" 2>/dev/null
end
complete -c @PROGRAM@ -f -a '(@FUNCTION@)'
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::string completion_script(const std::string& shell, const std::string& program) {
  std::string function = shell == "fish" ? "__" + program + "_complete" : "_" + program;
  for (char& c : function)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  std::string script = shell == "bash" ? kBashScript : shell == "zsh" ? kZshScript : kFishScript;
  script = replaced(std::move(script), "@FUNCTION@", function);
  script = replaced(std::move(script), "@COMPLETE@", kCompleteWords);
  return replaced(std::move(script), "@PROGRAM@", program);
}

}  // namespace

std::string name_of_program(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  const bool is_plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == '+';
  });
  return is_plain ? name : "weft";
}

void add_completion(CLI::App& app, Action& action, const std::string& program) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print a script with which a shell completes command lines");
  command->add_option("SHELL", *shell, "Of which it is")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer("Examples:\n  source <(weft completion bash)\n  weft completion fish | source");
  command->callback([shell, program, &action] {
    action = [shell, program] {
      fmt::print("{}", completion_script(*shell, name_of_program(program)));
      return 0;
    };
  });
}

}  // namespace weft::cli
