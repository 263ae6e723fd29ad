// weft pack: training records of any data set, written for fast reading.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/progress.h"
#include "weft/base/say.h"
#include "weft/base/version.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/data/dataset/data_spec.h"
#include "weft/data/open_dataset.h"
#include "weft/data/packed/writer.h"
#include "weft/train/interrupt.h"

namespace weft::cli {

namespace {

constexpr int64_t kSmallestShard = 10'000;

struct PackCommandOptions {
  std::string spec, out, shard_size = "256MB", max_bad_records = data::kDefaultDamageLimit;
  int64_t size = 0, quality = 0, threads = 0;
  bool quiet = false, json = false;
};

void print_result(const data::PackResult& result, const std::string& out, double seconds, const std::string& program) {
  int64_t samples = 0;
  size_t shards = 0;
  std::string counts;
  for (const data::PackedSplit& split : result.manifest.splits) {
    samples += split.samples;
    shards += split.shards.size();
    counts += fmt::format("{}{} for {}ing", counts.empty() ? "" : ", ", split.samples, split.name);
  }
  std::string left_out;
  if (result.left_out > 0) left_out = fmt::format("; {} could not be read and are left out", result.left_out);
  fmt::print(
      "packed {} samples ({}) into {} shard{} of {} together, in {}{}\nnext, try:\n  {} train ... --data packed:{}\n",
      samples, counts, shards, shards == 1 ? "" : "s", human_bytes(static_cast<double>(result.bytes)),
      human_duration(seconds), left_out, program, out);
}

void print_json(const data::PackResult& result, const std::string& out, double seconds) {
  nlohmann::ordered_json root = {
      {"directory", out}, {"bytes", result.bytes}, {"seconds", seconds}, {"left_out", result.left_out}};
  for (const data::PackedSplit& split : result.manifest.splits)
    root[split.name] = {{"samples", split.samples}, {"records", split.records}, {"shards", split.shards.size()}};
  fmt::print("{}\n", root.dump(2));
}

int pack_command(const Library& library, const PackCommandOptions& options, const std::string& program) {
  if (data::parse_data_spec(options.spec).kind == "packed")
    fail(ErrorKind::usage, "'{}' is packed already; copy the folder, or pack what it was made from", options.spec);
  const int64_t shard_bytes = parse_bytes(options.shard_size).value_or(0);
  if (shard_bytes < kSmallestShard)
    fail(ErrorKind::usage, "--shard-size '{}': wants a size from {} on, such as 64MB", options.shard_size,
         human_bytes(static_cast<double>(kSmallestShard)));
  const auto training = data::open_dataset(library.data, options.spec, data::Split::train);
  std::unique_ptr<data::Dataset> test;
  if (data::has_test_split(library.data, options.spec))
    test = data::open_dataset(library.data, options.spec, data::Split::test, training->info().encoding);
  if (!training->info().note.empty()) say(training->info().note);
  if (test && !test->info().note.empty() && test->info().note != training->info().note) say(test->info().note);

  ProgressOptions progress_options = progress_options_for(stderr);
  progress_options.verb = "packed";
  progress_options.item = training->tokens().empty() ? "records" : "pieces of text";
  Progress progress(stderr, std::move(progress_options));
  const train::InterruptGuard interrupt;
  data::PackOptions pack_options{.shard_bytes = shard_bytes,
                                 .picture_size = options.size,
                                 .quality = options.quality,
                                 .max_bad_records = options.max_bad_records,
                                 .threads = static_cast<int>(options.threads > 0 ? options.threads : available_cores()),
                                 .source = data::with_absolute_paths(library.data, options.spec),
                                 .weft = std::string(version())};
  pack_options.stop_requested = [&] { return interrupt.requested(); };
  pack_options.note = [&](const std::string& line) { progress.message("weft: " + line); };
  if (!options.quiet)
    pack_options.progress = [&](const data::PackProgress& at) {
      progress.update({.step = at.records, .steps = at.of, .items = at.records});
    };
  const auto begin = std::chrono::steady_clock::now();
  const data::PackResult result = data::pack(*training, test.get(), options.out, pack_options);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  progress.finish();
  if (!result.finished) {
    say(fmt::format("interrupted; nothing was left of '{}'", options.out));
    return train::kInterruptedExitCode;
  }
  if (options.json)
    print_json(result, options.out, seconds);
  else
    print_result(result, options.out, seconds, program);
  return 0;
}

}  // namespace

void add_pack(CLI::App& app, Action& action, const Library& library, const std::string& program) {
  auto options = std::make_shared<PackCommandOptions>();
  CLI::App* command = app.add_subcommand("pack", "Write a data set as sharded, checksummed training records");
  command->add_option("SPEC", options->spec, "The data, as for `weft train --data`")->type_name("SPEC")->required();
  command->add_option("OUT", options->out, "New folder, to be read as packed:OUT")->type_name("DIR")->required();
  command->add_option("--shard-size", options->shard_size, "Of a file, such as 64MB; default 256MB");
  command
      ->add_option("--size", options->size,
                   "Pictures: make those smaller whose shorter side has more pixels; default: keep the files' bytes")
      ->check(CLI::Range(1, 65535));
  command
      ->add_option("--quality", options->quality,
                   "Pictures: JPEG quality, for all of them; default 90, for those made smaller")
      ->check(CLI::Range(1, 100));
  command->add_option("--max-bad-records", options->max_bad_records,
                      "Samples of a split that cannot be read and are left out, a number or a share; default 1%");
  command->add_option("--threads", options->threads, "Default: all cores this process may use")
      ->check(CLI::Range(0, 1024));
  command->add_flag("--quiet", options->quiet, "No progress line");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, program, &action, &library] {
    action = [options, program, &library] { return pack_command(library, *options, program); };
  });
}

}  // namespace weft::cli
