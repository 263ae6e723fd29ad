// Steps of ranks that train together by data parallelism, on a cluster: each computes its part of the batch and
// exchanges gradients as its compiled step says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/machines/cluster_file.h"
#include "weft/simulate/step_program.h"
#include "weft/simulate/task_graph.h"

namespace weft::simulate {

/// Ranks that compute the same in the same time; one stands for all of them.
struct RankClass {
  std::string name = "rank 0";
  int count = 1;
  const StepProgram* program = nullptr;
  double factor = 1;  // of the seconds of its nodes
};

struct StepOptions {
  int ranks = 1;
  int steps = 3;                // in a row; the first begins without what a step before would have left
  int batches = 1;              // accumulated in a step; see StepCollective::is_of_last_batch
  double bytes_factor = 1;      // of what is exchanged: 0.5 where f32 travels as 16 bits
  double start_seconds = 5e-6;  // of a rank, to begin a collective
};

struct SimulatedStep {
  double seconds = 0;                       // of the last step, from the end of the one before
  double compute_seconds = 0;               // of the slowest class
  double exchange_seconds = 0;              // that the network is at it
  double waiting_seconds = 0;               // in which the slowest class does nothing but wait
  double link_bytes = 0;                    // that a host, or where there is one the device, sends in a step
  std::vector<CollectiveCost> collectives;  // as chosen, per collective of the program
  TaskGraph tasks;                          // of all steps, for traces
  std::vector<Span> spans;
};

/// All classes must have the same collectives. Those begin when the last class is there, and go one after the other.
SimulatedStep simulate_step(const std::vector<RankClass>& classes, const machines::ClusterFile& cluster,
                            const StepOptions& options);

/// Shares of a batch for ranks of these rates that let all of them end at the same time: whole samples, at least one,
/// by largest remainders. The largest give what the least ones get beyond their rate.
std::vector<int64_t> unequal_shares(int64_t batch, const std::vector<double>& speeds);

/// How much longer than the step of equal ranks a step is with the cluster's stragglers: the mean, over `draws` seeded
/// draws, of the largest factor among the ranks.
double straggler_factor(const machines::Stragglers& stragglers, int ranks, uint64_t seed, int draws = 200);

/// How much longer than the device file says what the first so many ranks of the cluster compute takes, for which all
/// wait: by the slowest of their rates, times their stragglers.
double slowest_factor(const machines::ClusterFile& cluster, int ranks, uint64_t seed);

}  // namespace weft::simulate
