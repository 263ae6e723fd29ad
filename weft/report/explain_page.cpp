#include "weft/report/explain_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/format.h"
#include "weft/base/html.h"
#include "weft/report/comm_report.h"
#include "weft/report/explain_text.h"
#include "weft/report/html_page.h"
#include "weft/report/op_profile.h"

namespace weft::report {

namespace {

/// The classes' shares of the step as bars, of which a part is the floor.
std::string bars_of(const Explained& explained) {
  const std::vector<OpProfile> classes = sum_by_class(explained.nodes);
  double longest = 1e-30;
  for (const OpProfile& one : classes) longest = std::max(longest, one.seconds);
  std::string bars;
  for (const OpProfile& one : classes)
    bars += fmt::format(
        "<span>{}</span><div><div class=\"bar\" style=\"width:{:.1f}%\"><div style=\"width:{:.1f}%\"></div></div></div>"
        "<span class=\"right\">{}, {:.1f} %</span>\n",
        escape_html(one.op_class), 100 * one.seconds / longest,
        one.seconds > 0 ? 100 * std::clamp(one.floor_seconds / one.seconds, 0.0, 1.0) : 0, human_duration(one.seconds),
        100 * one.seconds / std::max(1e-30, explained.step_seconds));
  return "<div class=\"bars\">\n" + bars +
         "</div>\n<p class=\"faint\">The other colour in a bar is its floor: what this machine needs at least.</p>\n";
}

std::string time_section(const ExplainPage& page) {
  const Explained& explained = page.explained;
  return paragraph(floor_text(explained)) + bars_of(explained) + "<h3>Classes of ops</h3>\n" +
         scrolled(class_table(sum_by_class(explained.nodes))) + "<h3>Kernels</h3>\n" +
         scrolled(profile_table(sum_by_kernel(explained.nodes), explained.nodes.size())) +
         "<h3>Nodes furthest above their floor</h3>\n" + scrolled(nodes_table(explained, page.rows));
}

std::string memory_section(const ExplainPage& page) {
  const CompiledStep& step = *page.explained.compiled;
  return paragraph(memory_summary(page.explained)) +
         picture(draw_memory_svg(step.graph, step.plan, "memory over the step of " + page.run),
                 "Memory by use over the step, and where each tensor lies in the arena") +
         "<h3>At the peak</h3>\n" + paragraph(peak_text(page.explained)) + scrolled(peak_table(page.explained));
}

std::string exchange_section(const ExplainPage& page) {
  const Explained& explained = page.explained;
  return paragraph(page.exchange) +
         scrolled(collectives_rows(explained.averaging ? explained.averaging->collectives : explained.collectives));
}

std::string curves_section(const ExplainPage& page) {
  if (!page.curves) return "<p>The run has recorded nothing yet.</p>\n";
  return picture(*page.curves, "Curves of the run's loss and metrics");
}

}  // namespace

std::string explain_page(const ExplainPage& page) {
  const bool has_exchange = !page.exchange.empty();
  return html_page(
      page.run, "weft explain",
      paragraph(page.headline) + paragraph(page.audit) +
          fmt::format("<nav><a href=\"#curves\">Curves</a><a href=\"#time\">Time</a><a href=\"#memory\">Memory</a>{}"
                      "</nav>\n",
                      has_exchange ? "<a href=\"#exchange\">Communication</a>" : "") +
          section("curves", "Curves", curves_section(page)) + section("time", "Time of a step", time_section(page)) +
          section("memory", "Memory", memory_section(page)) +
          (has_exchange ? section("exchange", "Communication between ranks", exchange_section(page)) : ""));
}

}  // namespace weft::report
