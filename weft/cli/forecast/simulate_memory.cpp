#include "weft/cli/forecast/simulate_memory.h"

#include <fmt/format.h>

#include "weft/base/format.h"
#include "weft/predict/planned_run.h"

namespace weft::cli {

std::string least_memory_text(const Library& library, const SimulatedModel& model,
                              const machines::ClusterFile& cluster) {
  predict::PlannedModel planned{.spec = model.spec, .input = [input = model.input](const spec::StepShape& shape) {
                                  models::ModelInput own = input;
                                  own.batch = shape.batch;
                                  return own;
                                }};
  planned.spec.batch = model.batch / model.ranks * model.ranks;
  const predict::Place place{.cluster = &cluster};
  const predict::Strategy strategy = predict::strategy_on(planned.spec, place, model.ranks);
  const auto least = static_cast<double>(predict::least_memory(library, planned, strategy, place));
  const double has = cluster.device->memory_bytes;
  const std::string text = fmt::format("the least is {}, with activations computed twice", human_bytes(least));
  if (least > has) return text + "; share states with --set shard.zero=3 on more ranks, or choose a smaller --batch";
  std::string limit = human_bytes(has);
  std::erase(limit, ' ');
  const std::string precision = model.spec.precision == "f32" ? "" : " --precision " + model.spec.precision;
  return fmt::format("{}: `weft plan {} --cluster {} --ranks {} --batch {}{} --memory-limit {}` plans it", text,
                     model.name, model.cluster, model.ranks, planned.spec.batch, precision, limit);
}

}  // namespace weft::cli
