#include "weft/report/range_figure.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "weft/base/error.h"
#include "weft/report/run_curves.h"
#include "weft/run/policies/policy_file.h"
#include "weft/run/run_directory.h"

namespace weft::report {

plot::Figure draw_range_tests(const std::vector<std::string>& paths) {
  plot::Figure figure;
  plot::Panel panel{
      .title = "loss over the learning rate", .x_label = "logarithm of the rate to the base 10", .series = {}};
  int group = 0;
  for (const std::string& path : paths) {
    const std::optional<run::Policies> policies = run::read_policies(run::RunDirectory::open(path).policy());
    if (!policies || !policies->range || policies->range->steps.empty())
      fail(ErrorKind::usage,
           "'{}' has no range test: runs whose recipe says optimizer.learning_rate = \"auto\" and that are long enough "
           "make one",
           path);
    const run::RangeTest& test = *policies->range;
    const std::string name = name_of_run(path);
    plot::Series raw{.name = name, .x = {}, .y = {}, .group = group, .faint = true},
        smooth{.name = name, .x = {}, .y = {}, .group = group};
    for (size_t at = 0; at < test.steps.size(); ++at) {
      raw.x.push_back(std::log10(test.steps[at].rate));
      raw.y.push_back(test.steps[at].loss);
      smooth.y.push_back(test.smoothed[at]);
    }
    smooth.x = raw.x;
    const auto [low, high] = std::minmax_element(smooth.y.begin(), smooth.y.end());
    const double chosen = std::log10(policies->learning_rate);
    panel.series.push_back(std::move(raw));
    plot::Series mark{.name = name + ": chosen",
                      .x = {chosen, chosen},
                      .y = {*low, *high},
                      .group = group,
                      .line = plot::Line::dashed};
    panel.series.push_back(std::move(smooth));
    panel.series.push_back(std::move(mark));
    ++group;
  }
  figure.panels.push_back(std::move(panel));
  return figure;
}

}  // namespace weft::report
