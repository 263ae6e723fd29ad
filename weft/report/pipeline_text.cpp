#include "weft/report/pipeline_text.h"

#include <fmt/format.h>

#include "weft/base/format.h"
#include "weft/comm/exchange.h"
#include "weft/comm/on_all_ranks.h"

namespace weft::report {

namespace {

std::string shown_bytes(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

/// "stage 2", "stages 0 and 2", "stages 0, 2 and 4"
std::string stages_of(const step::PipelineOutlook& pipeline) {
  const passes::StagePlacement& placement = pipeline.order.placement;
  std::string text = fmt::format("stage{} {}", placement.chunks > 1 ? "s" : "", pipeline.rank);
  for (int chunk = 1; chunk < placement.chunks; ++chunk)
    text +=
        fmt::format("{}{}", chunk + 1 == placement.chunks ? " and " : ", ", placement.stage_of(pipeline.rank, chunk));
  return text;
}

std::string waits_of(const step::PipelineOutlook& pipeline, const Explained* measured) {
  const passes::PipelineForecast& forecast = pipeline.forecast;
  const double idle = forecast.idle[static_cast<size_t>(pipeline.rank)];
  std::string text =
      fmt::format("predicted to wait for {:.0f} % of forward and backward", 100 * idle / forecast.seconds);
  if (measured == nullptr) return text;
  double waited = 0;
  for (const CollectiveProfile& one : measured->collectives)
    if (one.is_message()) waited += one.wait_seconds;
  return fmt::format("waited {} of {} in a step, {}", human_duration(waited), human_duration(measured->step_seconds),
                     text);
}

std::string line_of(program::PlannedStep& step, int rank, const Explained* measured) {
  const step::PipelineOutlook& pipeline = *step.pipeline();
  return fmt::format(
      "rank {}, {}: states {}, arena {}, activations of up to {} micro-batches; sends {} in a step; {}\n", rank,
      stages_of(pipeline), shown_bytes(step.state_bytes()), shown_bytes(step.compiled().plan.arena_bytes),
      pipeline.most_waiting, shown_bytes(pipeline.sent_bytes), waits_of(pipeline, measured));
}

}  // namespace

std::string pipeline_text(program::PlannedStep& step, comm::Communicator* ranks, const Explained* measured) {
  if (step.pipeline() == nullptr || ranks == nullptr || step.choice().forward) return "";
  const std::vector<std::string> lines =
      comm::gather(*ranks, line_of(step, ranks->rank(), measured), "reports of the stages");
  if (!comm::is_first(ranks)) return "";
  const step::PipelineOutlook& pipeline = *step.pipeline();
  std::string text =
      fmt::format("pipeline of {} ranks, {}, {} micro-batches: predicted bubble {:.1f} %\n", pipeline.ranks,
                  pipeline.schedule, pipeline.micro_batches, 100 * pipeline.forecast.bubble());
  for (const std::string& line : lines) text += line;
  return text;
}

}  // namespace weft::report
