#include "weft/launch/launch_hosts.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <sstream>
#include <thread>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/host_name.h"
#include "weft/base/parse_number.h"
#include "weft/launch/child_process.h"

namespace weft::launch {

namespace {

constexpr std::chrono::seconds kAnswerTime{10};

/// From 1 on; 0 for anything else.
int parse_count(std::string_view text) { return std::max(0, parse_number<int>(text).value_or(0)); }

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

std::string value_of_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_in_slurm_job() {
  return !value_of_variable("SLURM_JOB_ID").empty() && !value_of_variable("SLURM_JOB_NODELIST").empty();
}

bool is_this_host(const std::string& name) {
  const std::string host = host_name();
  return name == "localhost" || name == host || name == host.substr(0, host.find('.')) || name.starts_with("127.");
}

/// What runs a command of one program with plain arguments on a host, as mpirun would.
std::vector<std::string> words_on_host(const std::string& host, const std::vector<std::string>& command) {
  if (is_in_slurm_job()) {
    std::vector<std::string> words = {"srun", "--overlap", "--nodes=1", "--ntasks=1", "--nodelist=" + host};
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }
  std::string agent = value_of_variable("OMPI_MCA_plm_rsh_agent");
  agent = agent.substr(0, agent.find(':'));  // "ssh : rsh": the first that there is
  std::vector<std::string> words = split(agent.empty() ? "ssh" : agent, ' ');
  std::erase(words, "");
  if (words.front() == "ssh") words.insert(words.end(), {"-o", "BatchMode=yes", "-o", "ConnectTimeout=5"});
  words.push_back(host);
  for (const std::string& word : command) words.push_back(quoted_for_shell(word));  // a shell of that host reads them
  return words;
}

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of("\r\n");
  if (end == std::string::npos) return "";
  const size_t begin = text.find_last_of('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

/// True where none is named.
bool has_one_of(const std::vector<HostSlots>& placed, const std::vector<std::string>& among) {
  return among.empty() || std::any_of(placed.begin(), placed.end(), [&](const HostSlots& host) {
           return std::count(among.begin(), among.end(), host.name) > 0;
         });
}

/// The first hosts that can take their share where as few as possible share the ranks alike; none where none can.
std::vector<HostSlots> place_evenly(const std::vector<HostSlots>& hosts, int ranks,
                                    const std::vector<std::string>& among) {
  for (int sharing = 1; sharing <= static_cast<int>(hosts.size()); ++sharing) {
    if (ranks % sharing != 0) continue;
    const int each = ranks / sharing;
    std::vector<HostSlots> placed;
    for (const HostSlots& host : hosts)
      if (host.slots >= each && static_cast<int>(placed.size()) < sharing) placed.push_back({host.name, each});
    // One that is wanted takes the place of the last one that is not.
    if (!has_one_of(placed, among))
      for (const HostSlots& host : hosts)
        if (host.slots >= each && !placed.empty() && std::count(among.begin(), among.end(), host.name) > 0) {
          placed.back() = {host.name, each};
          break;
        }
    if (static_cast<int>(placed.size()) == sharing && has_one_of(placed, among)) return placed;
  }
  return {};
}

}  // namespace

std::vector<HostSlots> parse_hosts(const std::string& text) {
  std::vector<HostSlots> hosts;
  for (const std::string& part : split(text, ',')) {
    const size_t colon = part.rfind(':');
    HostSlots host{.name = part.substr(0, colon)};
    if (colon != std::string::npos) host.slots = parse_count(std::string_view(part).substr(colon + 1));
    if (host.name.empty() || host.slots == 0 || host.name.find_first_of(" \t\"'") != std::string::npos)
      fail(ErrorKind::usage, "--hosts '{}': '{}' is no host with a number of ranks; write node1:2,node2:2", text, part);
    const auto known =
        std::find_if(hosts.begin(), hosts.end(), [&](const HostSlots& earlier) { return earlier.name == host.name; });
    if (known == hosts.end())
      hosts.push_back(host);
    else
      known->slots += host.slots;
  }
  return hosts;
}

std::vector<int> parse_slurm_counts(const std::string& text) {
  std::vector<int> counts;
  for (const std::string& part : split(text, ',')) {
    const size_t open = part.find("(x");
    const int count = parse_count(std::string_view(part).substr(0, open));
    const int times = open == std::string::npos ? 1
                      : part.ends_with(')')
                          ? parse_count(std::string_view(part).substr(open + 2, part.size() - open - 3))
                          : 0;
    if (count == 0 || times == 0)
      fail(ErrorKind::usage, "SLURM_TASKS_PER_NODE is '{}': '{}' is no number; name the hosts with --hosts", text,
           part);
    counts.insert(counts.end(), static_cast<size_t>(times), count);
  }
  return counts;
}

std::vector<HostSlots> hosts_of_slurm_job() {
  if (!is_in_slurm_job()) return {};
  ChildProcess expand({"scontrol", "show", "hostnames", value_of_variable("SLURM_JOB_NODELIST")},
                      ChildProcess::Output::kept);
  const std::string names = expand.wait(kAnswerTime);
  if (!expand.has_ended() || expand.exit_code() != 0)
    fail(ErrorKind::io, "`scontrol show hostnames` does not tell the nodes of this job: {}; name them with --hosts",
         expand.has_ended() ? last_line(names) : "it gave no answer");
  std::vector<HostSlots> hosts;
  for (const std::string& name : split(names, '\n')) hosts.push_back({.name = name});
  const std::string tasks = value_of_variable("SLURM_TASKS_PER_NODE");
  if (tasks.empty()) return hosts;
  const std::vector<int> counts = parse_slurm_counts(tasks);
  for (size_t host = 0; host < std::min(hosts.size(), counts.size()); ++host) hosts[host].slots = counts[host];
  return hosts;
}

int count_slots(const std::vector<HostSlots>& hosts) {
  return std::accumulate(hosts.begin(), hosts.end(), 0,
                         [](int count, const HostSlots& host) { return count + host.slots; });
}

std::vector<HostSlots> place_ranks(const std::vector<HostSlots>& hosts, int ranks) {
  std::vector<HostSlots> placed = hosts;
  int left = ranks;
  for (HostSlots& host : placed) {
    host.slots = std::min(host.slots, left);
    left -= host.slots;
  }
  for (size_t host = 0; left > 0 && !placed.empty(); host = (host + 1) % placed.size(), --left) ++placed[host].slots;
  std::erase_if(placed, [](const HostSlots& host) { return host.slots == 0; });
  return placed;
}

PlacedRanks usable_ranks(const std::vector<HostSlots>& hosts, int most, const RankNeeds& needs,
                         const std::vector<std::string>& among) {
  const auto divides = [&](int count) {
    return std::all_of(needs.divided.begin(), needs.divided.end(), [&](int64_t number) { return number % count == 0; });
  };
  for (int count = hosts.empty() ? most : std::min(most, count_slots(hosts)); count > 0; --count) {
    if (!divides(count)) continue;
    if (hosts.empty()) return {.count = count};
    PlacedRanks placed{count, needs.as_many_on_each ? place_evenly(hosts, count, among) : place_ranks(hosts, count)};
    if (!placed.hosts.empty() && has_one_of(placed.hosts, among)) return placed;
  }
  return {};
}

std::string host_of_rank(const std::vector<HostSlots>& placed, int rank) {
  for (const HostSlots& host : placed) {
    if (rank < host.slots) return host.name;
    rank -= host.slots;
  }
  return "";
}

bool has_ranks_here(const std::vector<HostSlots>& placed) {
  return placed.empty() ||
         std::any_of(placed.begin(), placed.end(), [](const HostSlots& host) { return is_this_host(host.name); });
}

std::string print_hosts(const std::vector<HostSlots>& hosts) {
  std::string text;
  for (const HostSlots& host : hosts) text += fmt::format("{}{}:{}", text.empty() ? "" : ",", host.name, host.slots);
  return text;
}

std::vector<HostSlots> without_slot(std::vector<HostSlots> hosts, const std::string& name) {
  for (HostSlots& host : hosts)
    if (host.name == name) --host.slots;
  std::erase_if(hosts, [](const HostSlots& host) { return host.slots == 0; });
  return hosts;
}

namespace {

struct Answer {
  std::string failure = {};  // why the command did not end with 0; empty where it did, and for this host
  std::string said = {};     // what it printed
};

/// By host. This host is not asked.
std::vector<Answer> answers_of(const std::vector<HostSlots>& hosts, const std::vector<std::string>& command) {
  std::vector<std::unique_ptr<ChildProcess>> attempts;
  for (const HostSlots& host : hosts)
    attempts.push_back(is_this_host(host.name) ? nullptr
                                               : std::make_unique<ChildProcess>(words_on_host(host.name, command),
                                                                                ChildProcess::Output::kept));
  const auto end = std::chrono::steady_clock::now() + kAnswerTime;
  std::vector<Answer> answers(hosts.size());
  for (size_t host = 0; host < hosts.size(); ++host) {
    if (attempts[host] == nullptr) continue;
    Answer& answer = answers[host];
    const auto left = std::max(std::chrono::steady_clock::duration{}, end - std::chrono::steady_clock::now());
    answer.said = attempts[host]->wait(left);
    if (!attempts[host]->has_ended())
      answer.failure = fmt::format("it did not answer within {} s", kAnswerTime.count());
    else if (attempts[host]->exit_code() != 0)
      answer.failure = last_line(answer.said).empty() ? fmt::format("exit code {}", attempts[host]->exit_code())
                                                      : last_line(answer.said);
    if (!attempts[host]->has_ended()) attempts[host]->send(SIGKILL);
  }
  return answers;
}

std::vector<std::string> failures_of(const std::vector<HostSlots>& hosts, const std::vector<std::string>& command) {
  std::vector<std::string> failures;
  for (const Answer& answer : answers_of(hosts, command)) failures.push_back(answer.failure);
  return failures;
}

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

}  // namespace

std::vector<std::string> find_unreachable(const std::vector<HostSlots>& hosts) { return failures_of(hosts, {"true"}); }

std::vector<std::string> hosts_that_miss(const std::vector<HostSlots>& hosts, const std::filesystem::path& file) {
  const std::vector<std::string> failures = failures_of(hosts, {"test", "-e", file.string()});
  std::vector<std::string> missing;
  for (size_t host = 0; host < hosts.size(); ++host)
    if (!failures[host].empty()) missing.push_back(hosts[host].name);
  return missing;
}

namespace {

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
