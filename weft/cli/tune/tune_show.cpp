#include "weft/cli/tune/tune_show.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/cli/tune/key_pictures.h"
#include "weft/cli/tune/study_figure.h"
#include "weft/cli/tune/study_page.h"
#include "weft/cli/tune/study_table.h"
#include "weft/tune/results/what_mattered.h"

namespace weft::cli {

namespace fs = std::filesystem;

namespace {

const std::vector<std::string>& pictures() {
  static const std::vector<std::string> names = {"history", "slices", "parallel", "contour", "importance"};
  return names;
}

struct ShowOptions {
  std::string folder, output, picture, keys;
  int64_t rows = 0;  // 0: all
  bool as_json = false, importance = false;
};

/// The best run's summary, where it is finished.
std::optional<run::Summary> best_summary(const tune::Study& study, const std::optional<tune::StudyTrial>& best) {
  std::error_code code;
  if (!best || !fs::exists(study.run_of(best->number) / "summary.json", code)) return std::nullopt;
  return run::parse_summary(read_text(study.run_of(best->number) / "summary.json"));
}

/// "search.svg" as the chosen picture.
std::string picture_of(const ShowOptions& options, const tune::StudySettings& settings,
                       const std::vector<tune::StudyTrial>& trials, const std::string& extension) {
  if (options.picture == "history" || options.picture == "slices") {
    const plot::Figure figure =
        options.picture == "slices" ? slices_figure(settings, trials) : study_figure(settings, trials);
    return extension == ".svg" ? plot::draw_svg(figure) : plot::draw_png(figure);
  }
  if (extension != ".svg") fail(ErrorKind::usage, "--picture {} is drawn as .svg; name such a file", options.picture);
  if (options.picture == "parallel") return parallel_picture(settings, trials);
  if (options.picture == "contour")
    return contour_picture(settings, trials, pair_of_keys(settings, trials, options.keys));
  return importance_picture(settings, importances_of(settings, trials));
}

void check_options(const ShowOptions& options, const std::string& extension) {
  if (!options.output.empty() && extension != ".svg" && extension != ".png" && extension != ".html")
    fail(ErrorKind::usage, "'{}' is neither a .svg nor a .png nor a .html file; name one of these", options.output);
  if (options.picture != "history" && (options.output.empty() || extension == ".html"))
    fail(ErrorKind::usage, "--picture {} wants a file: add -o FILE.svg", options.picture);
  if (!options.output.empty() && (options.as_json || options.importance))
    fail(ErrorKind::usage, "{} prints, and -o draws; leave one of the two away{}",
         options.as_json ? "--json" : "--importance", options.importance ? ", or take --picture importance" : "");
  if (!options.keys.empty() && options.picture != "contour")
    fail(ErrorKind::usage, "--keys are those of a contour; add --picture contour");
}

int show_command(const Library& library, const ShowOptions& options) {
  const std::string extension = fs::path(options.output).extension().string();
  check_options(options, extension);
  tune::Study study = tune::Study::look_at(options.folder);
  const std::vector<tune::StudyTrial> trials = study.trials();
  if (extension == ".html") {
    write_atomically(options.output,
                     study_page(library, fs::path(options.folder).lexically_normal().filename().string(),
                                study.settings(), trials, best_summary(study, best_trial(study.settings(), trials))));
    return 0;
  }
  if (!options.output.empty()) {
    write_atomically(options.output, picture_of(options, study.settings(), trials, extension));
    return 0;
  }
  if (options.importance) {
    const tune::Importances importances = importances_of(study.settings(), trials);
    fmt::print("{}", options.as_json ? importance_json(study.settings(), importances)
                                     : importance_table(study.settings(), importances).text());
    return 0;
  }
  if (options.as_json)
    fmt::print("{}", study_json(study.settings(), trials, best_summary(study, best_trial(study.settings(), trials))));
  else
    fmt::print("{}", study_text(study.settings(), trials, static_cast<size_t>(options.rows)));
  return 0;
}

}  // namespace

void add_tune_show(CLI::App& tune, Action& action, const Library& library) {
  auto shown = std::make_shared<ShowOptions>();
  shown->picture = pictures().front();
  CLI::App* show = tune.add_subcommand("show", "Print the trials of a study, the best first");
  show->add_option("STUDY", shown->folder, "Folder of a study")->type_name("DIR")->required();
  show->add_option("--top", shown->rows, "So many trials; default: all")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}));
  show->add_flag("--importance", shown->importance,
                 "How much of the variance each key decides, and each pair of keys (fANOVA), in place of the trials");
  show->add_flag("--json", shown->as_json, "Print JSON");
  show->add_option("-o,--output", shown->output, "Draw the search as FILE.svg or FILE.png, or all of it as FILE.html")
      ->type_name("FILE");
  show->add_option(
          "--picture", shown->picture,
          "What to draw: history (default), slices (the result over each key), parallel (each trial across all "
          "keys), contour (two keys), importance")
      ->check(CLI::IsMember(pictures()));
  show->add_option("--keys", shown->keys, "Two keys for a contour; default: the two that decide the most")
      ->type_name("KEY,KEY");
  show->callback([shown, &action, &library] { action = [shown, &library] { return show_command(library, *shown); }; });
}

}  // namespace weft::cli
