#include "weft/cli/comm_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>

#include "weft/base/format.h"
#include "weft/base/table.h"
#include "weft/graph/collective.h"
#include "weft/passes/overlap_all_gathers.h"
#include "weft/passes/overlap_all_reduces.h"
#include "weft/plan/deferral.h"

namespace weft::cli {

namespace {

const CollectiveOps* ops_of(const Node& node) {
  return is_message(node) ? find_ops(node, kMessages) : find_collective(node);
}

/// "3 collectives, 2 messages"
std::string count_text(const std::vector<CollectiveProfile>& all) {
  const auto messages = std::count_if(all.begin(), all.end(), [](const auto& one) { return one.is_message(); });
  const auto others = static_cast<std::ptrdiff_t>(all.size()) - messages;
  if (messages == 0) return fmt::format("{} collectives", others);
  return fmt::format("{}{} messages", others > 0 ? fmt::format("{} collectives, ", others) : "", messages);
}

/// `bytes`: of one rank's operands.
double predicted_seconds(const passes::Ranks& ranks, std::string_view kind, int64_t bytes) {
  if (kind == kAllReduce) return passes::predicted_seconds(ranks, bytes);
  // Of what is gathered a rank receives all but its own part.
  if (kind == kSend || kind == kReceive)
    return passes::predicted_gather_seconds(ranks, bytes * ranks.count / std::max(1, ranks.count - 1));
  // As many bytes leave a rank in each of the others' halves of an all-reduce.
  return passes::predicted_gather_seconds(ranks, kind == kAllGather ? bytes * ranks.count : bytes);
}

}  // namespace

std::vector<CollectiveProfile> profile_collectives(const Graph& graph, const Plan& plan, const Profile& profile,
                                                   const passes::Ranks& ranks) {
  std::vector<double> begins(plan.steps.size());
  double whole = 0;
  for (const size_t index : order_of_run(plan)) {
    begins[index] = whole;
    whole += profile.seconds[index];
  }
  std::vector<CollectiveProfile> collectives;
  std::map<std::pair<std::string, int64_t>, size_t> under_way;  // by kind and number
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    const Node& node = graph.node(plan.steps[index].node);
    const double seconds = profile.seconds[index];
    const CollectiveOps* const ops = ops_of(node);
    if (ops == nullptr) continue;
    if (is_collective_wait(node)) {
      CollectiveProfile& ended = collectives[under_way.at({ops->whole, node.attributes.integer("number")})];
      const double computing = begins[index] - ended.starts_at - ended.start_seconds;
      ended.hidden_seconds = std::max(0.0, plan.steps[index].before < 0 ? computing : computing + whole);
      ended.wait_seconds = seconds;
      if (ended.is_message()) ended.took_seconds = ended.start_seconds + ended.hidden_seconds + seconds;
    } else {
      const bool is_half = is_collective_start(node);
      CollectiveProfile begun{
          .node = plan.steps[index].node,
          .tensors = is_half ? node.attributes.text("tensors") : graph.node_name(plan.steps[index].node),
          .kind = ops->whole,
          .starts_at = begins[index]};
      // What is received is no operand.
      for (const ValueId value : node.inputs.empty() ? node.outputs : node.inputs)
        begun.bytes += graph.type(value).bytes();
      if (is_message(node)) {
        begun.peer = static_cast<int>(node.attributes.integer("peer"));
        begun.algorithm = fmt::format("{} rank {}", begun.kind == kSend ? "to" : "from", begun.peer);
        begun.took_seconds = seconds;
      }
      begun.predicted_seconds = predicted_seconds(ranks, begun.kind, begun.bytes);
      (is_half ? begun.start_seconds : begun.wait_seconds) = seconds;
      if (is_half) under_way[{ops->whole, node.attributes.integer("number")}] = collectives.size();
      collectives.push_back(std::move(begun));
    }
  }
  return collectives;
}

std::string collectives_table(const std::vector<CollectiveProfile>& collectives, double step_seconds,
                              const passes::Ranks& ranks) {
  const auto milliseconds = [](double seconds) { return fmt::format("{:.2f}", 1e3 * seconds); };
  Table table({{"reduced over the ranks, gathered or sent"},
               {"by"},
               {"bytes", Align::right},
               {"starts at ms", Align::right},
               {"predicted", Align::right},
               {"took", Align::right},
               {"starting", Align::right},
               {"computing", Align::right},
               {"waiting", Align::right}});
  int64_t bytes = 0, sent = 0, received = 0;
  double spent = 0;
  for (const CollectiveProfile& one : collectives) {
    table.add_row({one.tensors, one.algorithm, human_bytes(static_cast<double>(one.bytes)), milliseconds(one.starts_at),
                   milliseconds(one.predicted_seconds), milliseconds(one.took_seconds), milliseconds(one.start_seconds),
                   milliseconds(one.hidden_seconds), milliseconds(one.wait_seconds)});
    (one.kind == kReceive ? received : one.kind == kSend ? sent : bytes) += one.bytes;
    spent += one.start_seconds + one.wait_seconds;
  }
  bytes += std::max(sent, received);  // links carry both ways at once
  const double computing = step_seconds - spent, links = static_cast<double>(bytes) / ranks.bytes_per_second;
  const std::string bound = links > computing
                                ? fmt::format("the exchange bounds the step: it takes {} longer than computing does",
                                              human_duration(links - computing))
                                : fmt::format("computing bounds the step: the exchange needs {:.0f} % of its time",
                                              computing > 0 ? 100 * links / computing : 0);
  return fmt::format(
      "{}\n{} of {} in each step; starting them and waiting for them takes {}, {:.1f} % of it\n"
      "of {} per step {} are computing; all bytes, one after the other, are predicted to take {}: {}\n",
      table.text(), count_text(collectives), human_bytes(static_cast<double>(bytes)), human_duration(spent),
      step_seconds > 0 ? 100 * spent / step_seconds : 0, human_duration(step_seconds), human_duration(computing),
      human_duration(links), bound);
}

}  // namespace weft::cli
