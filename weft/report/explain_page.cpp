#include "weft/report/explain_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/format.h"
#include "weft/base/html.h"
#include "weft/base/version.h"
#include "weft/report/comm_report.h"
#include "weft/report/explain_text.h"
#include "weft/report/op_profile.h"

namespace weft::report {

namespace {

/// Pictures are drawn on white. In the dark they are turned over, hues stay.
constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --ground: #fff; --ink: #1c1c1c; --faint: #666; --line: #d8d8d8; --bar: #0072b2;
  --floor: #56b4e9; --box: #f6f6f6; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #161616; --ink: #e6e6e6; --faint: #a0a0a0; --line: #3a3a3a; --bar: #56b4e9; --floor: #0072b2;
    --box: #202020; }
  figure svg { filter: invert(0.91) hue-rotate(180deg); }
}
body { background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; max-width: 1160px;
  margin: 0 auto; padding: 1em 1.5em 4em; }
h1 { font-size: 1.6em; overflow-wrap: anywhere; }
h2 { border-bottom: 1px solid var(--line); margin-top: 2em; }
nav a { margin-right: 1em; color: inherit; }
p, pre { white-space: pre-line; }
figure { margin: 1em 0; overflow-x: auto; }
figure svg { max-width: 100%; height: auto; }
pre { white-space: pre; overflow-x: auto; background: var(--box); padding: 0.8em; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 0.15em 0.7em; text-align: left; white-space: nowrap; }
th { border-bottom: 1px solid var(--line); color: var(--faint); font-weight: 600; }
tbody + tbody { border-top: 1px solid var(--line); }
tbody tr:hover { background: var(--box); }
.right { text-align: right; }
.bars { display: grid; grid-template-columns: max-content 1fr max-content; gap: 0.25em 0.8em; align-items: center; }
.bar { background: var(--bar); height: 1.1em; min-width: 1px; }
.bar div { background: var(--floor); height: 100%; }
.faint { color: var(--faint); }
)";

std::string section(const char* id, const char* title, const std::string& content) {
  return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, title, content);
}

std::string paragraph(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  text.erase(0, text.find_first_not_of('\n'));
  return text.empty() ? "" : "<p>" + escape_html(text) + "</p>\n";
}

std::string scrolled(const Table& table) { return "<div class=\"scroll\">\n" + table.html() + "</div>\n"; }

/// The element alone, with words for those who cannot see it.
std::string picture(std::string svg, const std::string& words) {
  const size_t begin = svg.find("<svg");
  if (begin != svg.npos) svg.erase(0, begin);
  if (begin != svg.npos) svg.insert(4, fmt::format(" role=\"img\" aria-label=\"{}\"", escape_html(words)));
  return "<figure>\n" + svg + "</figure>\n";
}

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
  if (plot::draws_pictures()) return picture(plot::draw_svg(*page.curves), "Curves of the run's loss and metrics");
  std::string charts;
  for (const plot::Panel& panel : page.curves->panels) charts += plot::draw_text(panel, 100, 16) + "\n";
  return "<pre>" + escape_html(charts) + "</pre>\n";
}

}  // namespace

std::string explain_page(const ExplainPage& page) {
  const std::string name = escape_html(page.run);
  const bool has_exchange = !page.exchange.empty();
  return fmt::format(
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{} - weft "
             "explain</title>\n"
             "<style>{}</style>\n</head>\n<body>\n<h1>{}</h1>\n{}{}"
             "<nav><a href=\"#curves\">Curves</a><a href=\"#time\">Time</a><a href=\"#memory\">Memory</a>{}</nav>\n",
             name, kStyle, name, paragraph(page.headline), paragraph(page.audit),
             has_exchange ? "<a href=\"#exchange\">Communication</a>" : "") +
         section("curves", "Curves", curves_section(page)) + section("time", "Time of a step", time_section(page)) +
         section("memory", "Memory", memory_section(page)) +
         (has_exchange ? section("exchange", "Communication between ranks", exchange_section(page)) : "") +
         fmt::format("<p class=\"faint\">weft {}</p>\n</body>\n</html>\n", version());
}

}  // namespace weft::report
