// weft cluster bench: a collective of f32 over tensor sizes: chosen algorithm, each algorithm, foreign memory, MPI's.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/table.h"
#include "weft/cli/forecast/cluster.h"
#include "weft/comm/collectives.h"
#include "weft/comm/exchange.h"
#include "weft/comm/schedules/all_gather.h"
#include "weft/comm/schedules/broadcast.h"
#include "weft/program/rank_runtime.h"
#include "weft/tensor/tensor.h"

namespace weft::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBatchSeconds = 2e-3;  // what is shorter is repeated within a round

/// Several times what MPI takes over links of 100 Mbit/s.
double limit_seconds(int64_t bytes) { return 60 + static_cast<double>(bytes) / 1e6; }

double upper_median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// A way to do it to the first bytes of some memory in place.
struct Way {
  std::string name;
  float* memory = nullptr;
  std::function<void(int64_t bytes)> run;
  bool is_silent = false;            // a rank gives no signs of life meanwhile
  std::vector<double> seconds = {};  // of each round, of the rank that took the longest
};

/// The group of collectives with one algorithm, and the operands.
class Runner {
 public:
  Runner(comm::Communicator& ranks, comm::CollectiveKind kind, const comm::CollectivesOptions& options,
         std::shared_ptr<std::byte> memory, int64_t largest)
      : kind_(kind),
        collectives_(ranks, options),
        memory_(memory ? std::move(memory) : collectives_.allocate(largest)) {
    std::fill_n(reinterpret_cast<float*>(memory_.get()), largest / 4, 0.0f);
  }
  void run(int64_t bytes) {
    if (bytes != prepared_bytes_) {  // once, as a step does
      prepared_ = prepare(bytes);
      prepared_bytes_ = bytes;
    }
    void* const tensor = memory_.get();
    collectives_.reduce(prepared_, std::span(&tensor, 1));
  }
  comm::CollectiveId prepare(int64_t bytes) {
    const int64_t elements = comm::has_parts(kind_) ? bytes / 4 / collectives_.size() : bytes / 4;
    return collectives_.prepare({"bench", DType::f32, comm::Reduction::sum, {elements}, kind_});
  }
  float* memory() const { return reinterpret_cast<float*>(memory_.get()); }
  comm::CollectiveReport report(int64_t bytes) { return collectives_.report(prepare(bytes)); }

 private:
  const comm::CollectiveKind kind_;
  comm::Collectives collectives_;
  std::shared_ptr<std::byte> memory_;
  int64_t prepared_bytes_ = -1;
  comm::CollectiveId prepared_;
};

/// Seconds per run, of the slowest rank. Each writes its operand before, as a step does, so that no rank finds in its
/// own cache what another one has to send it; that is not timed. Nor is the first run: what shapes a link, or a card's
/// queue, may let a burst through at once to those who come after somebody slow.
double time_round(comm::Communicator& ranks, const Way& way, int64_t bytes, int repeats) {
  comm::WaitLimits limits;
  if (way.is_silent) limits.silence_seconds = limit_seconds(bytes);
  double seconds = 0;
  for (int i = -1; i < repeats; ++i) {
    std::fill_n(way.memory, bytes / 4, 1.0f);
    comm::barrier(ranks, "bench", limits);
    const auto begin = Clock::now();
    way.run(bytes);
    if (i >= 0) seconds += std::chrono::duration<double>(Clock::now() - begin).count() / repeats;
  }
  comm::all_reduce_max(ranks, std::span(&seconds, 1), "bench", limits);
  return seconds;
}

void time_ways(comm::Communicator& ranks, std::vector<Way>& ways, int64_t bytes, int rounds) {
  std::vector<int> repeats;
  for (Way& way : ways) {
    way.seconds.clear();
    const double once = time_round(ranks, way, bytes, 2);
    repeats.push_back(static_cast<int>(std::clamp(kBatchSeconds / once, 1.0, 200.0)));
  }
  for (int round = 0; round < rounds; ++round)
    for (size_t w = 0; w < ways.size(); ++w) ways[w].seconds.push_back(time_round(ranks, ways[w], bytes, repeats[w]));
}

std::vector<comm::Algorithm> algorithms_of(comm::CollectiveKind kind, bool may_be_native, int groups) {
  if (kind == comm::CollectiveKind::all_reduce) {
    std::vector<comm::Algorithm> all = comm::all_algorithms();
    if (groups > 1) all.push_back(comm::Algorithm::hierarchical);
    if (may_be_native) all.push_back(comm::Algorithm::native);
    return all;
  }
  return comm::has_parts(kind)  ? comm::all_gather_algorithms()
         : comm::has_root(kind) ? comm::broadcast_algorithms()
                                : comm::all_algorithms();
}

}  // namespace

int cluster_bench(comm::MpiSession& session, const ClusterBenchOptions& options) {
  comm::Communicator& ranks = session.communicator();
  comm::CollectivesOptions chosen;
  chosen.costs = program::agreed_costs(&ranks, options.costs);
  const int64_t largest = options.largest_bytes / 4 * 4;
  Runner shared(ranks, options.kind, chosen, nullptr, largest),
      foreign(ranks, options.kind, chosen, allocate_aligned(largest), largest);
  const auto of_mpi = allocate_aligned(largest);
  std::vector<Way> ways;
  ways.push_back({"weft", shared.memory(), [&](int64_t bytes) { shared.run(bytes); }});
  ways.push_back({"weft, foreign memory", foreign.memory(), [&](int64_t bytes) { foreign.run(bytes); }});
  const int groups = std::max<int>(1, static_cast<int>(chosen.costs.topology.groups.size()));
  std::vector<std::unique_ptr<Runner>> of_algorithms;
  int hosts = 1;
  for (const comm::Member& member : ranks.members()) hosts = std::max(hosts, member.host_index + 1);
  if (hosts > 1)
    for (const comm::Algorithm algorithm : algorithms_of(options.kind, hosts == ranks.size(), groups)) {
      comm::CollectivesOptions fixed = chosen;
      fixed.algorithm = algorithm;
      of_algorithms.push_back(std::make_unique<Runner>(ranks, options.kind, fixed, nullptr, largest));
      ways.push_back({algorithm == comm::Algorithm::native ? "MPI within weft" : std::string(comm::name_of(algorithm)),
                      of_algorithms.back()->memory(),
                      [runner = of_algorithms.back().get()](int64_t bytes) { runner->run(bytes); }});
    }
  const auto run_mpi = [&](int64_t bytes) {
    session.run(options.kind, {reinterpret_cast<float*>(of_mpi.get()), static_cast<size_t>(bytes / 4)},
                limit_seconds(bytes));
  };
  ways.push_back({session.version(), reinterpret_cast<float*>(of_mpi.get()), run_mpi, /*is_silent=*/true});

  std::vector<Column> columns{{"bytes", Align::right}};
  for (const Way& way : ways) columns.push_back({way.name, Align::right});
  columns.push_back({"over MPI", Align::right});
  columns.push_back({"how"});
  columns.push_back({"predicted", Align::right});
  Table table(columns);
  auto rows = nlohmann::ordered_json::array();
  for (int64_t bytes = 1024; bytes <= largest; bytes *= 4) {
    time_ways(ranks, ways, bytes, options.rounds);
    const comm::CollectiveReport report = shared.report(bytes);
    std::string how = report.hosts == 1 ? "shared memory" : std::string(comm::name_of(report.between.algorithm));
    if (report.between.chunk > 0)
      how += fmt::format(", {} chunks", human_bytes(4.0 * static_cast<double>(report.between.chunk)));
    how += comm::describe_order(report.between.order);
    std::vector<std::string> cells{human_bytes(static_cast<double>(bytes))};
    nlohmann::ordered_json row{{"bytes", bytes}, {"how", how}, {"predicted_seconds", report.predicted_seconds}};
    for (const Way& way : ways) {
      cells.push_back(human_duration(upper_median(way.seconds)));
      row["seconds"][way.name] = way.seconds;
    }
    cells.push_back(fmt::format("{:.2f}", upper_median(ways.back().seconds) / upper_median(ways.front().seconds)));
    cells.push_back(how);
    cells.push_back(human_duration(report.predicted_seconds));
    table.add_row(std::move(cells));
    rows.push_back(std::move(row));
  }
  if (ranks.rank() != 0) return 0;
  if (options.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"collective", comm::name_of(options.kind)},
                                              {"ranks", ranks.size()},
                                              {"hosts", hosts},
                                              {"groups", groups},
                                              {"mpi", session.version()},
                                              {"rows", rows}}
                           .dump(2));
  else
    fmt::print("{} of f32 in place, {} ranks{}, medians of {} rounds{}\n{}", comm::name_of(options.kind), ranks.size(),
               groups > 1 ? fmt::format(" on {} hosts in {} groups", hosts, groups) : "", options.rounds,
               comm::has_parts(options.kind) ? "; bytes of the parts of all ranks" : "", table.text());
  return 0;
}

}  // namespace weft::cli
