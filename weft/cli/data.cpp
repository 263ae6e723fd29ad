// weft data: what a data set holds, before a model is trained on it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/say.h"
#include "weft/base/table.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/data/dataset/check_samples.h"
#include "weft/data/dataset/class_names.h"
#include "weft/data/dataset/data_spec.h"
#include "weft/data/formats/table_encoding.h"
#include "weft/data/load/write_samples.h"
#include "weft/data/open_dataset.h"
#include "weft/program/run_data.h"
#include "weft/report/contact_sheet.h"

namespace weft::cli {

namespace {

using nlohmann::ordered_json;

constexpr size_t kClassesShown = 30;

struct DataOptions {
  std::string spec, contact_sheet, samples;
  std::vector<std::string> set;
  bool augment = false, json = false, verify = false;
  int64_t seed = 1, threads = 0, count = 0;
};

/// Of each class: samples for training, for testing.
using ClassCounts = std::vector<std::array<int64_t, 2>>;

/// What there is to say about one data set.
struct Description {
  std::unique_ptr<data::Dataset> train, test;
  data::ChannelStatistics statistics;  // of images
  ClassCounts counts;                  // where targets are classes
  std::vector<std::string> damaged;    // messages, one per sample that cannot be read
};

ClassCounts count_classes(const Description& d) {
  const data::DatasetInfo& info = d.train->info();
  if (info.target_kind() != data::TargetKind::sample_class) return {};
  ClassCounts counts(static_cast<size_t>(info.classes));
  for (size_t part = 0; part < 2; ++part) {
    const data::Dataset* const dataset = part == 0 ? d.train.get() : d.test.get();
    if (dataset == nullptr) continue;
    const std::vector<int64_t> of_part = dataset->class_counts();
    for (size_t at = 0; at < counts.size(); ++at) counts[at][part] = of_part[at];
  }
  return counts;
}

/// Packed records, of which each has a checksum, need not be read to be described.
bool is_packed(const std::string& spec) { return spec.starts_with("packed:"); }

/// `spec` with every damaged record passed over, so that all are named.
std::string bearing_damage(const std::string& text) {
  data::DataSpec spec = data::parse_data_spec(text);
  std::erase_if(spec.options, [](const auto& option) { return option.first == "max_bad_records"; });
  spec.options.emplace_back("max_bad_records", "100%");
  return data::print_data_spec(spec);
}

ordered_json columns_json(const data::TableEncoding& encoding) {
  auto columns = ordered_json::array();
  for (const data::TableColumn& column : encoding.columns()) {
    ordered_json entry = {{"name", column.name}, {"kind", name_of(column.kind)}};
    if (column.kind == data::TableColumn::Kind::number) {
      entry["mean"] = column.mean;
      entry["deviation"] = column.deviation;
      entry["can_miss"] = column.can_miss;
    }
    if (column.kind == data::TableColumn::Kind::category) entry["categories"] = column.categories;
    columns.push_back(std::move(entry));
  }
  return columns;
}

ordered_json to_json(const std::string& spec, const Description& d) {
  const data::DatasetInfo& info = d.train->info();
  ordered_json root = {{"data", spec},
                       {"name", info.name},
                       {"task", info.task},
                       {"train_samples", d.train->size()},
                       {"test_samples", d.test ? d.test->size() : 0},
                       {"sample_shape", info.sample_shape.dims()},
                       {"sample_dtype", name_of(info.sample_dtype)},
                       {"target_shape", info.target_shape.dims()},
                       {"target_dtype", name_of(info.target_dtype)}};
  if (info.target_kind() == data::TargetKind::values) {
    root["target_mean"] = info.targets.mean;
    root["target_deviation"] = info.targets.deviation;
  } else {
    root[info.target_kind() == data::TargetKind::next_tokens ? "vocabulary" : "classes"] = info.classes;
  }
  for (size_t index = 0; index < d.counts.size(); ++index)
    root["class_counts"].push_back({{"name", data::class_name(info.class_names, static_cast<int64_t>(index))},
                                    {"train", d.counts[index][0]},
                                    {"test", d.counts[index][1]}});
  if (info.sample_dtype == DType::u8) {
    root["mean"] = d.statistics.mean;
    root["deviation"] = d.statistics.deviation;
  }
  if (data::is_table(info)) root["columns"] = columns_json(data::TableEncoding::from_json(info.encoding));
  if (info.target_kind() == data::TargetKind::next_tokens) root["characters"] = info.class_names;
  for (const auto& [name, text] : info.facts) root["facts"][name] = text;
  if (!info.note.empty()) root["note"] = info.note;
  if (!d.damaged.empty()) root["damaged"] = d.damaged;
  return root;
}

template <typename Number>
std::string joined_numbers(const std::vector<Number>& values) {
  std::string text;
  for (const Number value : values) text += fmt::format("{}{:.4g}", text.empty() ? "" : ", ", value);
  return text;
}

void print_columns(const data::TableEncoding& encoding) {
  Table table({{"column"}, {"kind"}, {"mean", Align::right}, {"deviation", Align::right}, {"becomes"}});
  for (const data::TableColumn& column : encoding.columns()) {
    const bool number = column.kind == data::TableColumn::Kind::number;
    const std::string becomes = number && column.can_miss ? "a number, and whether it is missing"
                                : number                  ? "a number"
                                : column.kind == data::TableColumn::Kind::category
                                    ? fmt::format("{} categories and others", column.categories.size())
                                    : "";
    table.add_row({column.name, std::string(name_of(column.kind)), number ? fmt::format("{:.5g}", column.mean) : "",
                   number ? fmt::format("{:.5g}", column.deviation) : "", becomes});
  }
  fmt::print("\n{}", table.text());
}

void print_text(const Description& d) {
  const data::DatasetInfo& info = d.train->info();
  Table table({{"", Align::left}, {"", Align::left}});
  table.add_row({"data", info.name});
  table.add_row({"task", info.task});
  table.add_row({"samples", fmt::format("{} for training, {} for testing", d.train->size(),
                                        d.test ? std::to_string(d.test->size()) : "none")});
  table.add_row({"a sample",
                 fmt::format("{} of {} ({})", to_string(info.sample_shape), info.item(), name_of(info.sample_dtype))});
  if (info.target_kind() == data::TargetKind::values && !info.targets.mean.empty())
    for (size_t at = 0; at < info.targets.mean.size(); ++at) {
      const std::string_view title = at > 0 ? "" : info.classes > 1 ? "targets" : "a target";
      table.add_row({std::string(title), fmt::format("{}: mean {:.4g}, deviation {:.4g}",
                                                     data::class_name(info.class_names, static_cast<int64_t>(at)),
                                                     info.targets.mean[at], info.targets.deviation[at])});
    }
  else if (info.target_kind() == data::TargetKind::values)
    table.add_row({"a target", fmt::format("{} values", info.classes)});
  if (info.target_kind() == data::TargetKind::next_tokens)
    table.add_row({"vocabulary", fmt::format("{} characters", info.classes)});
  for (const auto& [name, text] : info.facts) table.add_row({name, text});
  if (info.sample_dtype == DType::u8) {
    table.add_row({"mean", joined_numbers(d.statistics.mean)});
    table.add_row({"deviation", joined_numbers(d.statistics.deviation)});
  }
  fmt::print("{}", table.text());
  if (!d.counts.empty()) {
    Table classes({{"class"}, {"training", Align::right}, {"testing", Align::right}});
    for (size_t index = 0; index < std::min(d.counts.size(), kClassesShown); ++index)
      classes.add_row({data::class_name(info.class_names, static_cast<int64_t>(index)),
                       std::to_string(d.counts[index][0]), std::to_string(d.counts[index][1])});
    if (d.counts.size() > kClassesShown)
      classes.add_row({fmt::format("{} more (--json lists them)", d.counts.size() - kClassesShown), "", ""});
    fmt::print("\n{}", classes.text());
  }
  if (data::is_table(info)) print_columns(data::TableEncoding::from_json(info.encoding));
}

spec::RunSpec spec_from(const Library& library, const DataOptions& options) {
  spec::RunSpec spec;
  spec.data = options.spec;
  spec.seed = options.seed;
  spec.threads = options.threads > 0 ? options.threads : available_cores();
  for (const std::string& assignment : options.set) {
    if (!assignment.starts_with("augment."))
      fail(ErrorKind::usage, "--set {}: only keys of [augment] matter here", assignment);
    spec::set_from_text(spec, assignment, library);
  }
  if (spec::mixes(spec.augment))
    fail(ErrorKind::usage,
         "augment.mixup and augment.cutmix mix the images of a batch, a sheet shows single ones; leave "
         "them away");
  return spec;
}

void write_samples(const DataOptions& options, const Description& d) {
  for (const auto& [dataset, part] : {std::pair(d.train.get(), "train"), {d.test.get(), "test"}}) {
    if (dataset == nullptr) continue;
    const int64_t count = data::write_samples(*dataset, d.statistics, options.count, options.samples, part);
    if (!options.json)
      fmt::print("{}/{}_samples.npy: {} samples, with targets beside them\n", options.samples, part, count);
  }
}

int data_command(const Library& library, const DataOptions& options) {
  if (options.count > 0 && options.samples.empty())
    fail(ErrorKind::usage, "--count {} is for the samples that --samples DIR writes; add it", options.count);
  const spec::RunSpec spec = spec_from(library, options);
  if (!options.set.empty() && !options.augment)
    fail(ErrorKind::usage, "--set {} does nothing without --augment", options.set.front());
  if (options.augment && options.contact_sheet.empty())
    fail(ErrorKind::usage, "--augment shows itself in a contact sheet; add --contact-sheet FILE.png");
  Description d;
  const std::string opened = is_packed(options.spec) ? bearing_damage(options.spec) : options.spec;
  d.train = data::open_dataset(library.data, opened, data::Split::train);
  if (data::has_test_split(library.data, opened))
    d.test = data::open_dataset(library.data, opened, data::Split::test, d.train->info().encoding);
  const data::DatasetInfo& info = d.train->info();
  if (!info.note.empty()) say(info.note);
  if (d.test && !d.test->info().note.empty() && d.test->info().note != info.note) say(d.test->info().note);
  const auto threads = static_cast<int>(spec.threads);
  for (const data::Dataset* part : {d.train.get(), d.test.get()}) {
    if (part == nullptr) continue;
    if (options.verify || !is_packed(options.spec))
      for (std::string& message : data::unreadable_samples(*part, threads)) d.damaged.push_back(std::move(message));
    for (data::DamagedSample& sample : part->list_damaged()) d.damaged.push_back(std::move(sample.message));
  }
  d.counts = count_classes(d);
  if (info.sample_dtype == DType::u8 && d.damaged.empty()) d.statistics = data::channel_statistics(*d.train, threads);
  for (const std::string& message : d.damaged) say(message);
  if (options.verify && d.damaged.empty())
    say(fmt::format("verified: all {} samples can be read", d.train->size() + (d.test ? d.test->size() : 0)));
  if (options.json)
    fmt::print("{}\n", to_json(options.spec, d).dump(2, ' ', false, ordered_json::error_handler_t::replace));
  else
    print_text(d);
  if (!d.damaged.empty()) return 1;
  if (!options.contact_sheet.empty()) {
    report::write_contact_sheet(options.contact_sheet, *d.train, spec, d.statistics, options.augment);
    if (!options.json) fmt::print("\ncontact sheet: {}\n", options.contact_sheet);
  }
  if (!options.samples.empty()) write_samples(options, d);
  return 0;
}

}  // namespace

void add_data(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<DataOptions>();
  CLI::App* command = app.add_subcommand("data", "Show what a data set holds");
  std::string help = "One of:\n";
  for (const data::DatasetKind& kind : library.data) help += fmt::format("  {}\n      {}\n", kind.form, kind.summary);
  command->footer(help);
  command->add_option("SPEC", options->spec, "The data, as for `weft train --data`")->type_name("SPEC")->required();
  command
      ->add_option(
          "--contact-sheet", options->contact_sheet,
          "PNG to write: a row of images per class; with --augment a row per image, as successive epochs see it")
      ->type_name("FILE");
  command
      ->add_option("--samples", options->samples,
                   "Folder for the samples as NumPy's files, normalised as a network gets them, and their targets")
      ->type_name("DIR");
  command->add_option("--count", options->count, "Samples to write of each part; default: all")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  command->add_flag("--augment", options->augment, "Augment the images of the contact sheet");
  command->add_option("--set", options->set, "Any key of [augment], such as augment.flip=random; repeatable")
      ->type_name("augment.KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--seed", options->seed, "Of the augmentation")->check(CLI::NonNegativeNumber);
  command->add_option("--threads", options->threads, "Default: all cores this process may use")
      ->check(CLI::Range(0, 1024));
  command->add_flag("--verify", options->verify,
                    "Read every sample of packed data and check it; of other data that is always done");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback(
      [options, &action, &library] { action = [options, &library] { return data_command(library, *options); }; });
}

}  // namespace weft::cli
