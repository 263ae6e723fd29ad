#include "weft/base/table.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/html.h"

namespace weft {

namespace {

/// Characters on the screen: UTF-8 continuation bytes take no place of their own.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; }));
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  check(cells.size() <= columns_.size(), "a table row has more cells than columns");
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<size_t> widths;
  for (const Column& column : columns_) widths.push_back(width_of(column.title));
  for (const auto& row : rows_)
    for (size_t at = 0; at < row.size(); ++at) widths[at] = std::max(widths[at], width_of(row[at]));

  std::string text;
  const auto end_line = [&] {
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  };
  const auto put_cells = [&](const auto& cell_at) {
    for (size_t at = 0; at < columns_.size(); ++at) {
      const std::string& cell = cell_at(at);
      const std::string padding(widths[at] - width_of(cell), ' ');
      if (at != 0) text += "  ";
      text += columns_[at].align == Align::right ? padding + cell : cell + padding;
    }
    end_line();
  };
  const auto put_rule = [&] {
    for (size_t at = 0; at < columns_.size(); ++at) text += (at == 0 ? "" : "  ") + std::string(widths[at], '-');
    end_line();
  };

  const bool titled =
      std::any_of(columns_.begin(), columns_.end(), [](const Column& column) { return !column.title.empty(); });
  if (titled) {
    put_cells([&](size_t at) -> const std::string& { return columns_[at].title; });
    put_rule();
  }
  for (const auto& row : rows_) {
    if (row.empty())
      put_rule();
    else
      put_cells([&](size_t at) -> const std::string& { return row[at]; });
  }
  return text;
}

std::string Table::html() const {
  const auto row_of = [&](const char* tag, const auto& cell_at) {
    std::string row = "<tr>";
    for (size_t at = 0; at < columns_.size(); ++at) {
      const char* align = columns_[at].align == Align::right ? " class=\"right\"" : "";
      row += std::string("<") + tag + align + ">" + escape_html(cell_at(at)) + "</" + tag + ">";
    }
    return row + "</tr>\n";
  };
  std::string html =
      "<table>\n<thead>\n" + row_of("th", [&](size_t at) { return columns_[at].title; }) + "</thead>\n<tbody>\n";
  for (const auto& row : rows_)
    html += row.empty() ? "</tbody>\n<tbody>\n" : row_of("td", [&](size_t at) { return row[at]; });
  return html + "</tbody>\n</table>\n";
}

}  // namespace weft
