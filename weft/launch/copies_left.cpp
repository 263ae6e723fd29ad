#include "weft/launch/copies_left.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <system_error>

#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/launch/ask_hosts.h"
#include "weft/launch/text_parts.h"

namespace weft::launch {

namespace {

/// Of names such as step-00000120, one on each line; -1 where there is none.
int64_t newest_step_in(const std::string& names) {
  int64_t newest = -1;
  for (const std::string& name : split(names, '\n')) {
    int64_t step = 0;
    const char* const begin = name.data() + std::strlen("step-");
    if (!name.starts_with("step-")) continue;
    const auto [end, code] = std::from_chars(begin, name.data() + name.size(), step);
    if (code == std::errc() && end == name.data() + name.size()) newest = std::max(newest, step);
  }
  return newest;
}

constexpr std::string_view kRecipeMark = "weft-recipe\n", kNamesMark = "weft-names\n", kEndMark = "weft-end\n";

/// Of what the command below printed, with whatever a login prints around it.
void read_answer(const std::string& said, HeldRun& held) {
  const size_t recipe = said.find(kRecipeMark), names = said.rfind(kNamesMark), end = said.rfind(kEndMark);
  if (recipe == said.npos || names == said.npos || end == said.npos || names < recipe || end < names) return;
  held.has_answered = true;
  held.recipe = said.substr(recipe + kRecipeMark.size(), names - recipe - kRecipeMark.size());
  held.newest = newest_step_in(said.substr(names + kNamesMark.size(), end - names - kNamesMark.size()));
}

HeldRun look_here(const std::string& host, const std::filesystem::path& run) {
  HeldRun held{.host = host, .has_answered = true};
  std::error_code code;
  if (std::filesystem::exists(run / "spec.toml", code)) held.recipe = read_text(run / "spec.toml");
  std::string names;
  for (const auto& entry : std::filesystem::directory_iterator(run / "checkpoints", code))
    names += entry.path().filename().string() + "\n";
  held.newest = newest_step_in(names);
  return held;
}

bool has_name(const std::vector<HostSlots>& hosts, const std::string& name) {
  return std::any_of(hosts.begin(), hosts.end(), [&](const HostSlots& host) { return host.name == name; });
}

}  // namespace

std::vector<HeldRun> find_run(const std::vector<HostSlots>& hosts, const std::filesystem::path& run) {
  const std::string command = fmt::format(
      "echo; echo weft-recipe; cat {} 2>/dev/null; echo weft-names; ls {} 2>/dev/null; "
      "echo weft-end",
      quoted_for_shell((run / "spec.toml").string()), quoted_for_shell((run / "checkpoints").string()));
  const std::vector<Answer> answers = answers_of(hosts, {"sh", "-c", command});
  std::vector<HeldRun> held;
  for (size_t host = 0; host < hosts.size(); ++host) {
    if (is_this_host(hosts[host].name)) {
      held.push_back(look_here(hosts[host].name, run));
      continue;
    }
    held.push_back({.host = hosts[host].name});
    read_answer(answers[host].said, held.back());
  }
  return held;
}

CopiesLeft judge_copies(const std::vector<HostSlots>& hosts, const std::vector<HeldRun>& held,
                        const std::vector<HostSlots>& before) {
  CopiesLeft left;
  bool has_witness = false;
  for (const HeldRun& one : held) {
    if (!one.has_answered || !has_name(before, one.host)) continue;
    has_witness = true;
    if (one.recipe.empty()) continue;
    if (!left.recipe.empty() && one.recipe != left.recipe) {
      left.next = CopiesLeft::Next::two_runs;
      return left;
    }
    left.recipe = one.recipe;
    left.newest = std::max(left.newest, one.newest);
  }
  if (!has_witness) return left;
  left.next = left.recipe.empty() ? CopiesLeft::Next::begin : CopiesLeft::Next::go_on;
  const auto of = [&](const std::string& name) {
    return std::find_if(held.begin(), held.end(), [&](const HeldRun& one) { return one.host == name; });
  };
  for (const HostSlots& host : hosts) {
    const auto one = of(host.name);
    if (one == held.end() || !one->has_answered)
      left.left_out.push_back(fmt::format("host '{}' does not say what it has of the run and is left out", host.name));
    else if (!one->recipe.empty() && one->recipe != left.recipe)
      left.left_out.push_back(
          fmt::format("host '{}' holds another run under the same path and is left out", host.name));
    else
      left.hosts.push_back(host);
  }
  if (left.next == CopiesLeft::Next::begin) return left;
  std::stable_sort(left.hosts.begin(), left.hosts.end(), [&](const HostSlots& a, const HostSlots& b) {
    const auto newest = [&](const HostSlots& host) {
      return of(host.name)->recipe.empty() ? int64_t{-2} : of(host.name)->newest;
    };
    return newest(a) > newest(b);
  });
  left.newest = std::max(left.newest, of(left.hosts.front().name)->newest);
  for (const HostSlots& host : left.hosts)
    if (!of(host.name)->recipe.empty() && of(host.name)->newest == left.newest) left.holders.push_back(host.name);
  return left;
}

}  // namespace weft::launch
