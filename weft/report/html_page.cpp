#include "weft/report/html_page.h"

#include <fmt/format.h>

#include "weft/base/html.h"
#include "weft/base/version.h"

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

}  // namespace

std::string html_page(const std::string& title, const std::string& by, const std::string& body) {
  const std::string name = escape_html(title);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{} - {}</title>\n"
      "<style>{}</style>\n</head>\n<body>\n<h1>{}</h1>\n{}<p class=\"faint\">weft {}</p>\n</body>\n</html>\n",
      name, by, kStyle, name, body, version());
}

std::string section(const char* id, const char* title, const std::string& content) {
  return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, title, content);
}

std::string paragraph(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  text.erase(0, text.find_first_not_of('\n'));
  return text.empty() ? "" : "<p>" + escape_html(text) + "</p>\n";
}

std::string scrolled(const Table& table) { return "<div class=\"scroll\">\n" + table.html() + "</div>\n"; }

std::string picture(std::string svg, const std::string& words) {
  const size_t begin = svg.find("<svg");
  if (begin != svg.npos) svg.erase(0, begin);
  if (begin != svg.npos) svg.insert(4, fmt::format(" role=\"img\" aria-label=\"{}\"", escape_html(words)));
  return "<figure>\n" + svg + "</figure>\n";
}

std::string picture(const plot::Figure& figure, const std::string& words) {
  if (plot::draws_pictures()) return picture(plot::draw_svg(figure), words);
  std::string charts;
  for (const plot::Panel& panel : figure.panels) charts += plot::draw_text(panel, 100, 16) + "\n";
  return "<pre>" + escape_html(charts) + "</pre>\n";
}

}  // namespace weft::report
