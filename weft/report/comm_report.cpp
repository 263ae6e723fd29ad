#include "weft/report/comm_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>

#include "weft/base/format.h"
#include "weft/base/table.h"
#include "weft/graph/collective.h"
#include "weft/passes/ranks/overlap_all_reduces.h"
#include "weft/passes/ranks/overlap_collectives.h"
#include "weft/plan/deferral.h"

namespace weft::report {

namespace {

const CollectiveOps* ops_of(const Node& node) {
  return is_message(node) ? find_ops(node, kMessages) : find_collective(node);
}

/// "3 collectives, 1 message"
std::string count_text(const std::vector<CollectiveProfile>& all) {
  const auto counted = [](std::ptrdiff_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  const auto messages = std::count_if(all.begin(), all.end(), [](const auto& one) { return one.is_message(); });
  const auto others = static_cast<std::ptrdiff_t>(all.size()) - messages;
  if (messages == 0) return counted(others, "collective");
  return (others > 0 ? counted(others, "collective") + ", " : "") + counted(messages, "message");
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

/// A run on the time axis, of nodes that take so long.
struct Course {
  std::vector<double> begins;  // per step of the plan
  double whole = 0;

  Course(const Plan& plan, const std::vector<double>& seconds) : begins(plan.steps.size()) {
    for (const size_t index : order_of_run(plan)) {
      begins[index] = whole;
      whole += seconds[index];
    }
  }
  /// What is deferred is due in the next run.
  double begin_of(const Plan& plan, size_t index) const {
    return plan.steps[index].before < 0 ? begins[index] : begins[index] + whole;
  }
};

/// Of each step of the plan, without what it exchanges.
std::vector<double> predicted_computing(const Graph& graph, const Plan& plan, const CostModel& costs) {
  std::vector<double> seconds;
  for (const PlannedNode& step : plan.steps) {
    const bool exchanges = ops_of(graph.node(step.node)) != nullptr;
    seconds.push_back(exchanges ? 0 : costs.seconds(signature_of(graph, step.node), plan.threads));
  }
  return seconds;
}

}  // namespace

std::vector<CollectiveProfile> profile_collectives(const Graph& graph, const Plan& plan, const Profile& profile,
                                                   const passes::Ranks& ranks, const CostModel& costs) {
  const Course measured(plan, profile.seconds), predicted(plan, predicted_computing(graph, plan, costs));
  struct UnderWay {
    size_t place = 0;  // among the collectives
    double predicted_begin = 0, predicted_end = 0;
  };
  std::vector<CollectiveProfile> collectives;
  std::map<std::pair<std::string, int64_t>, UnderWay> under_way;  // by kind and number
  double link_is_free = 0;                                        // as predicted
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    const Node& node = graph.node(plan.steps[index].node);
    const double seconds = profile.seconds[index];
    const CollectiveOps* const ops = ops_of(node);
    if (ops == nullptr) continue;
    if (is_collective_wait(node)) {
      const UnderWay& begun = under_way.at({ops->whole, node.attributes.integer("number")});
      CollectiveProfile& ended = collectives[begun.place];
      ended.hidden_seconds = std::max(0.0, measured.begin_of(plan, index) - ended.starts_at - ended.start_seconds);
      ended.wait_seconds = seconds;
      const double due = predicted.begin_of(plan, index);
      ended.predicted_hidden_seconds = std::max(0.0, due - begun.predicted_begin);
      ended.predicted_wait_seconds = std::max(0.0, begun.predicted_end - due);
      if (ended.is_message()) ended.took_seconds = ended.start_seconds + ended.hidden_seconds + seconds;
    } else {
      const bool is_half = is_collective_start(node);
      CollectiveProfile begun{
          .node = plan.steps[index].node,
          .tensors = is_half ? node.attributes.text("tensors") : graph.node_name(plan.steps[index].node),
          .kind = ops->whole,
          .starts_at = measured.begins[index]};
      // What is received is no operand.
      for (const ValueId value : node.inputs.empty() ? node.outputs : node.inputs)
        begun.bytes += graph.type(value).bytes();
      if (is_message(node)) {
        begun.peer = static_cast<int>(node.attributes.integer("peer"));
        begun.algorithm = fmt::format("{} rank {}", begun.kind == kSend ? "to" : "from", begun.peer);
        begun.took_seconds = seconds;
      }
      if (begun.kind == kAllToAll) {
        begun.algorithm = "a message to each rank";
        begun.took_seconds = seconds;
      }
      begun.predicted_seconds = predicted_seconds(ranks, begun.kind, begun.bytes);
      (is_half ? begun.start_seconds : begun.wait_seconds) = seconds;
      const double begin = predicted.begins[index];
      link_is_free = std::max(link_is_free, begin) + begun.predicted_seconds;
      if (is_half)
        under_way[{ops->whole, node.attributes.integer("number")}] = {collectives.size(), begin, link_is_free};
      else
        begun.predicted_wait_seconds = link_is_free - begin;
      collectives.push_back(std::move(begun));
    }
  }
  return collectives;
}

Table collectives_rows(const std::vector<CollectiveProfile>& collectives) {
  const auto milliseconds = [](double seconds) { return fmt::format("{:.2f}", 1e3 * seconds); };
  Table table({{"reduced over the ranks, gathered or sent"},
               {"by"},
               {"bytes", Align::right},
               {"starts at ms", Align::right},
               {"predicted", Align::right},
               {"took", Align::right},
               {"starting", Align::right},
               {"predicted", Align::right},
               {"computing", Align::right},
               {"predicted", Align::right},
               {"waiting", Align::right}});
  for (const CollectiveProfile& one : collectives)
    table.add_row({one.tensors, one.algorithm, human_bytes(static_cast<double>(one.bytes)), milliseconds(one.starts_at),
                   milliseconds(one.predicted_seconds), milliseconds(one.took_seconds), milliseconds(one.start_seconds),
                   milliseconds(one.predicted_hidden_seconds), milliseconds(one.hidden_seconds),
                   milliseconds(one.predicted_wait_seconds), milliseconds(one.wait_seconds)});
  return table;
}

std::string exchange_summary(const std::vector<CollectiveProfile>& collectives, double step_seconds,
                             const passes::Ranks& ranks, std::string_view step) {
  int64_t bytes = 0, sent = 0, received = 0;
  double spent = 0;
  for (const CollectiveProfile& one : collectives) {
    (one.kind == kReceive ? received : one.kind == kSend ? sent : bytes) += one.bytes;
    spent += one.start_seconds + one.wait_seconds;
  }
  bytes += std::max(sent, received);  // links carry both ways at once
  const double computing = step_seconds - spent, links = static_cast<double>(bytes) / ranks.bytes_per_second;
  const std::string bound = links > computing
                                ? fmt::format("the exchange bounds the {}: it takes {} longer than computing does",
                                              step, human_duration(links - computing))
                                : fmt::format("computing bounds the {}: the exchange needs {:.0f} % of its time", step,
                                              computing > 0 ? 100 * links / computing : 0);
  return fmt::format(
      "{} of {} in each {}; starting them and waiting for them takes {}, {:.1f} % of it\n"
      "of {} per {} {} are computing; all bytes, one after the other, are predicted to take {}: {}\n",
      count_text(collectives), human_bytes(static_cast<double>(bytes)), step, human_duration(spent),
      step_seconds > 0 ? 100 * spent / step_seconds : 0, human_duration(step_seconds), step, human_duration(computing),
      human_duration(links), bound);
}

std::string collectives_table(const std::vector<CollectiveProfile>& collectives, double step_seconds,
                              const passes::Ranks& ranks, std::string_view step) {
  return collectives_rows(collectives).text() + "\n" + exchange_summary(collectives, step_seconds, ranks, step);
}

}  // namespace weft::report
