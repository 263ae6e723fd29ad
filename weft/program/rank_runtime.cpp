#include "weft/program/rank_runtime.h"

#include <algorithm>
#include <string>
#include <utility>

#include "weft/base/files.h"
#include "weft/base/memory.h"
#include "weft/base/seal.h"
#include "weft/comm/exchange.h"
#include "weft/comm/measure/measure.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/graph/collective.h"
#include "weft/runtime/collective_kernels.h"
#include "weft/runtime/message_kernels.h"
#include "weft/step/data_parallel.h"
#include "weft/step/micro_batches.h"
#include "weft/step/sharded_states.h"

namespace weft::program {

namespace {

constexpr double kSharedLatencySeconds = 2e-5;  // of a small all-reduce on one host: two wake-ups of a thread
constexpr int64_t kSmallElements = 16, kLargeElements = 16 << 20;

std::vector<int> ranks_of_stage(const Mesh& mesh, int of) {
  std::vector<int> ranks;
  for (int rank = 0; rank < mesh.size(); ++rank)
    if (mesh.coordinate(rank, kPipelineAxis) == mesh.coordinate(of, kPipelineAxis)) ranks.push_back(rank);
  return ranks;
}

int64_t least_memory_of(comm::Communicator& ranks) {
  double least = -static_cast<double>(memory_limit_bytes() / comm::ranks_of_host(&ranks));
  comm::all_reduce_max(ranks, {&least, 1}, "memory of the ranks");
  return static_cast<int64_t>(-least);
}

bool has_several_hosts(const comm::Communicator& ranks) { return ranks.members().back().host_index > 0; }

}  // namespace

comm::ClusterCosts agreed_costs(comm::Communicator* ranks, const std::string& file) {
  comm::ClusterCosts costs;
  if (ranks == nullptr) {
    if (!file.empty()) comm::read_cluster_file(file);  // plans nothing here, and is said to be wrong where it is
    return costs;
  }
  if (file.empty()) {
    if (!has_several_hosts(*ranks)) return costs;
    return comm::parse_cluster(comm::cluster_text(*ranks, comm::measure_cluster(*ranks)), "cluster.toml", *ranks);
  }
  const std::string text = comm::decided_by_first(ranks, "costs of collectives", [&] {
    std::string read = read_text(file);
    check_text_seal(read, file);
    comm::parse_cluster(read, file, *ranks);
    return read;
  });
  return comm::parse_cluster(text, file, *ranks);
}

passes::Ranks ranks_in_memory(int count, double bytes_per_second) {
  return {.count = count, .latency_seconds = kSharedLatencySeconds, .bytes_per_second = bytes_per_second};
}

RankRuntime::RankRuntime(comm::Communicator* ranks, int threads, const comm::ClusterCosts& costs, bool in_tree_order,
                         const Mesh& mesh)
    : ranks_(ranks), tensor_ranks_(static_cast<int>(mesh.size_of(kTensorAxis))) {
  if (ranks == nullptr) return;
  least_memory_ = least_memory_of(*ranks);
  comm::CollectivesOptions options;
  options.threads = threads;
  options.costs = costs;
  options.in_tree_order = in_tree_order;
  options.overlaps = true;
  const bool is_pipelined = mesh.size_of(kPipelineAxis) > 1;
  if (tensor_ranks_ == 1 && !is_pipelined) {
    collectives_ = std::make_shared<comm::Collectives>(*ranks, options);
    axes_[kDataAxis] = collectives_;
    alike_ranks_ = ranks;
  } else {
    if (is_pipelined) messages_ = std::make_shared<comm::Collectives>(*ranks, options);
    options.costs.topology = {};  // of all hosts, which a group need not have
    for (const MeshAxis& axis : mesh.axes()) {
      if (axis.size == 1 || axis.name == kPipelineAxis) continue;
      const auto number = static_cast<int>(groups_.size());
      groups_.push_back(std::make_shared<comm::Group>(*ranks, mesh.group_of(ranks->rank(), axis.name), number));
      axes_[axis.name] = std::make_shared<comm::Collectives>(*groups_.back(), options);
      alike_ranks_ = groups_.back().get();
    }
    // Of a pipeline those that have the same layers.
    if (axes_.size() > 1 && is_pipelined) {
      const auto number = static_cast<int>(groups_.size());
      groups_.push_back(std::make_shared<comm::Group>(*ranks, ranks_of_stage(mesh, ranks->rank()), number));
      alike_ranks_ = groups_.back().get();
    } else if (axes_.size() > 1) {
      alike_ranks_ = ranks;
    }
    if (const auto data = axes_.find(kDataAxis); data != axes_.end()) collectives_ = data->second;
  }
  if (has_several_hosts(*ranks)) cluster_ = comm::cluster_text(*ranks, costs);
}

KernelTable RankRuntime::kernels(KernelTable table) const {
  if (tensor_ranks_ > 1 && !axes_.empty())
    add_collective_kernels(table, axes_);
  else if (collectives_ != nullptr)
    add_collective_kernels(table, collectives_);
  if (messages_ != nullptr) add_message_kernels(table, messages_);
  return table;
}

std::shared_ptr<Arena> RankRuntime::make_arena(const Device& device) const {
  // Ranks share the host's memory alone; on other devices nodes copy what is exchanged.
  if (axes_.empty() || !device.memory()->is_host()) return std::make_shared<Arena>(device.memory());
  std::vector<std::shared_ptr<comm::Collectives>> groups;
  for (const auto& [axis, along] : axes_) groups.push_back(along);
  return std::make_shared<Arena>([ranks = alike_ranks_, owners = groups_, groups = std::move(groups)](int64_t bytes) {
    return comm::allocate_for_groups(*ranks, groups, bytes);
  });
}

passes::Ranks RankRuntime::costs() const {
  if (described_) return *described_;
  if (collectives_ == nullptr) return {};
  const double small = collectives_->predict_seconds(DType::f32, kSmallElements);
  const double large = collectives_->predict_seconds(DType::f32, kLargeElements);
  const double bytes = static_cast<double>(byte_size(DType::f32, kLargeElements - kSmallElements));
  return {.count = collectives_->size(),
          .latency_seconds = std::max(small, kSharedLatencySeconds),
          .bytes_per_second = bytes / (large - small)};
}

void RankRuntime::describe_hosts(const Mesh& mesh, int ranks_per_host, const comm::ClusterCosts& costs) {
  std::vector<comm::Member> members;
  for (int rank = 0; rank < mesh.size(); ++rank)
    members.push_back({.host = {}, .host_index = rank / ranks_per_host, .local_rank = rank % ranks_per_host});
  comm::CollectivesOptions options;
  options.costs = costs;
  options.overlaps = true;
  for (const MeshAxis& axis : mesh.axes()) {
    if (axis.size == 1 || axis.name == kPipelineAxis) continue;
    std::vector<comm::Member> along = comm::members_of_group(members, mesh.group_of(described_rank_, axis.name));
    const auto own = static_cast<int>(mesh.coordinate(described_rank_, axis.name));
    described_hosts_.try_emplace(axis.name, std::move(along), own, /*has_native=*/false, options);
  }
}

int64_t RankRuntime::message_buffer_bytes(const std::vector<const Graph*>& graphs) const {
  if (axes_.empty() && described_hosts_.empty()) return 0;
  return weft::message_buffer_bytes(graphs, [this](const std::string& axis, const comm::CollectiveSpec& spec) {
    if (const auto here = axes_.find(axis); here != axes_.end()) return here->second->buffer_bytes(spec);
    const auto described = described_hosts_.find(axis);
    return described == described_hosts_.end() ? int64_t{0} : described->second.buffer_bytes(spec);
  });
}

std::string RankRuntime::cluster() const { return cluster_; }

std::vector<comm::Collectives*> RankRuntime::all_collectives() const {
  std::vector<comm::Collectives*> all;
  for (const auto& [axis, along] : axes_) all.push_back(along.get());
  if (messages_ != nullptr) all.push_back(messages_.get());
  return all;
}

CompileOptions RankRuntime::training_options(const spec::RunSpec& spec, const Backend& backend,
                                             std::shared_ptr<const CostModel> node_costs) const {
  CompileOptions options = spec::compile_options(spec, backend);
  options.costs = std::move(node_costs);
  options.ranks = costs();
  options.ranks.may_defer = step::may_defer_updates(spec);
  options.ranks.batches = step::batches_per_exchange(spec);
  return options;
}

}  // namespace weft::program
