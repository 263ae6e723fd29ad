#include "weft/launch/ask_hosts.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/host_name.h"
#include "weft/launch/child_process.h"
#include "weft/launch/slurm_environment.h"
#include "weft/launch/text_parts.h"

namespace weft::launch {

namespace {

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

}  // namespace

bool is_this_host(const std::string& name) {
  const std::string host = host_name();
  return name == "localhost" || name == host || name == host.substr(0, host.find('.')) || name.starts_with("127.");
}

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

namespace {

std::vector<std::string> failures_of(const std::vector<HostSlots>& hosts, const std::vector<std::string>& command) {
  std::vector<std::string> failures;
  for (const Answer& answer : answers_of(hosts, command)) failures.push_back(answer.failure);
  return failures;
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

}  // namespace weft::launch
