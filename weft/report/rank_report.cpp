#include "weft/report/rank_report.h"

#include <fmt/format.h>

#include "weft/base/format.h"
#include "weft/comm/exchange.h"
#include "weft/comm/on_all_ranks.h"

namespace weft::report {

namespace {

using nlohmann::ordered_json;

std::string shown_bytes(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

/// "stage 2", "stages 0 and 2", "stages 0, 2 and 4"
std::string stages_text(const ordered_json& stages) {
  std::string text = fmt::format("stage{} {}", stages.size() > 1 ? "s" : "", stages[0].get<int>());
  for (size_t at = 1; at < stages.size(); ++at)
    text += fmt::format("{}{}", at + 1 == stages.size() ? " and " : ", ", stages[at].get<int>());
  return text;
}

void add_pipeline(ordered_json& row, const step::PipelineOutlook& pipeline) {
  const passes::StagePlacement& placement = pipeline.order.placement;
  for (int chunk = 0; chunk < placement.chunks; ++chunk)
    row["stages"].push_back(placement.stage_of(pipeline.rank, chunk));
  row["waiting_micro_batches"] = pipeline.most_waiting;
  row["sent_bytes"] = pipeline.sent_bytes;
  const double seconds = pipeline.forecast.seconds, idle = pipeline.forecast.idle[static_cast<size_t>(pipeline.rank)];
  row["predicted_idle"] = seconds > 0 ? idle / seconds : 0;  // of both directions
}

ordered_json row_of(program::PlannedStep& step, int rank, const Explained* measured) {
  ordered_json row = {{"rank", rank},
                      {"state_bytes", step.state_bytes()},
                      {"arena_bytes", step.compiled().plan.arena_bytes},
                      {"message_buffer_bytes", step.message_buffer_bytes()}};
  if (step.pipeline() != nullptr) add_pipeline(row, *step.pipeline());
  if (measured == nullptr) return row;
  double waited = 0, of_messages = 0;
  int64_t exchanged = 0;
  for (const CollectiveProfile& one : measured->collectives) {
    (one.is_message() ? of_messages : waited) += one.wait_seconds;
    if (!one.is_message()) exchanged += one.bytes;
  }
  row["exchanged_bytes"] = exchanged;  // by collectives
  row["waited_seconds"] = waited;
  if (step.pipeline() != nullptr) row["waited_for_messages_seconds"] = of_messages;
  row["step_seconds"] = measured->step_seconds;
  return row;
}

std::string waits_text(const ordered_json& row, const char* seconds) {
  if (!row.contains("step_seconds")) return "";
  return fmt::format("waited {} of {} in a step", human_duration(row[seconds].get<double>()),
                     human_duration(row["step_seconds"].get<double>()));
}

std::string line_of(const ordered_json& row) {
  const bool is_stage = row.contains("stages");
  std::string text = fmt::format(
      "rank {}{}: states {}, arena {}", row["rank"].get<int>(), is_stage ? ", " + stages_text(row["stages"]) : "",
      shown_bytes(row["state_bytes"].get<int64_t>()), shown_bytes(row["arena_bytes"].get<int64_t>()));
  if (is_stage) {
    const std::string waits = waits_text(row, "waited_for_messages_seconds");
    return text + fmt::format(
                      ", activations of up to {} micro-batches; sends {} in a step; {}{}predicted to wait for "
                      "{:.0f} % of forward and backward\n",
                      row["waiting_micro_batches"].get<int>(), shown_bytes(row["sent_bytes"].get<int64_t>()), waits,
                      waits.empty() ? "" : ", ", 100 * row["predicted_idle"].get<double>());
  }
  if (row.contains("exchanged_bytes"))
    text += fmt::format("; exchanges {}, {}", shown_bytes(row["exchanged_bytes"].get<int64_t>()),
                        waits_text(row, "waited_seconds"));
  return text + "\n";
}

}  // namespace

RankReport report_ranks(program::PlannedStep& step, comm::Communicator* ranks, const Explained* measured) {
  if (comm::number_of(ranks) == 1 || step.choice().forward) return {};
  const std::vector<std::string> rows =
      comm::gather(*ranks, row_of(step, ranks->rank(), measured).dump(), "reports of the ranks");
  if (!comm::is_first(ranks)) return {};
  RankReport report;
  for (const std::string& row : rows) report.ranks.push_back(ordered_json::parse(row));
  if (const step::PipelineOutlook* pipeline = step.pipeline())
    report.text =
        fmt::format("pipeline of {} ranks, {}, {} micro-batches: predicted bubble {:.1f} %\n", pipeline->ranks,
                    pipeline->schedule, pipeline->micro_batches, 100 * pipeline->forecast.bubble());
  const spec::RunSpec& spec = step.spec();
  if (spec.mesh.pipeline > 1 || spec.mesh.tensor > 1 || spec.shard.zero > 0)
    for (const ordered_json& row : report.ranks) report.text += line_of(row);
  return report;
}

}  // namespace weft::report
