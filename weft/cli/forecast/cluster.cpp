// weft cluster: what the links between ranks can do, and how fast collectives are over them. Runs under a launcher:
// mpirun -n 4 weft cluster probe.
#include "weft/cli/forecast/cluster.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/say.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/comm/measure/measure.h"
#include "weft/launch/launched_ranks.h"

namespace weft::cli {

namespace {

int cluster_probe(comm::Communicator& ranks, const std::string& file) {
  const comm::ClusterCosts costs = comm::measure_cluster(ranks);
  if (ranks.rank() != 0) return 0;
  const std::string text = comm::cluster_text(ranks, costs);
  if (!file.empty()) write_atomically(file, text);
  fmt::print("{}", text);
  if (!file.empty()) say(fmt::format("written to {}", file));
  return 0;
}

}  // namespace

void add_cluster(CLI::App& app, Action& action) {
  CLI::App* cluster = app.add_subcommand("cluster", "Measure the links between ranks; run it under mpirun or srun");
  cluster->require_subcommand(1);

  auto file = std::make_shared<std::string>("cluster.toml");
  CLI::App* probe = cluster->add_subcommand("probe", "Measure latency, bandwidth and memory; write cluster.toml");
  probe->add_option("--output", *file, "The file to write; empty: none")->type_name("FILE")->capture_default_str();
  probe->callback([file, &action] {
    action = [file] {
      return launch::between_ranks(
          "cluster probe", [&](comm::MpiSession& session) { return cluster_probe(session.communicator(), *file); });
    };
  });

  auto options = std::make_shared<ClusterBenchOptions>();
  auto largest = std::make_shared<std::string>("256MiB");
  auto collective = std::make_shared<std::string>("all_reduce");
  CLI::App* bench =
      cluster->add_subcommand("bench", "Time a collective from 1 KB on, each algorithm, beside MPI's own");
  bench->add_option("--collective", *collective, "all_reduce, all_gather, reduce_scatter, broadcast or reduce_to_root")
      ->capture_default_str();
  bench
      ->add_option("--costs", options->costs,
                   "A cluster.toml by which algorithms are chosen; default: links are measured first")
      ->type_name("FILE");
  bench->add_option("--largest", *largest, "Bytes of the largest tensor")->capture_default_str();
  bench->add_option("--rounds", options->rounds, "Of which medians are taken")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  bench->add_flag("--json", options->json, "Print JSON");
  bench->callback([options, largest, collective, &action] {
    action = [options, largest, collective] {
      const std::optional<comm::CollectiveKind> kind = comm::parse_collective(*collective);
      if (!kind)
        fail(ErrorKind::usage,
             "--collective {}: give all_reduce, all_gather, reduce_scatter, broadcast or reduce_to_root", *collective);
      options->kind = *kind;
      const std::optional<int64_t> bytes = parse_bytes(*largest);
      if (!bytes || *bytes < 1024) fail(ErrorKind::usage, "--largest {}: no number of bytes from 1024 on", *largest);
      options->largest_bytes = *bytes;
      return launch::between_ranks("cluster bench",
                                   [&](comm::MpiSession& session) { return cluster_bench(session, *options); });
    };
  });
}

}  // namespace weft::cli
