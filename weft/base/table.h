// Tables with aligned columns, as text and as HTML, for `weft models`, `weft explain` and the end of a run.
#pragma once

#include <string>
#include <vector>

namespace weft {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// One cell per column; missing ones at the end are empty. Error(internal) where there are too many.
  void add_row(std::vector<std::string> cells);
  /// A thin line between the rows before and after.
  void add_rule() { rows_.push_back({}); }
  /// Titles (left out where all are empty), a rule, rows; two spaces between columns, no spaces at line ends.
  std::string text() const;
  /// The same as an HTML table; cells of right columns have the class "right".
  std::string html() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

}  // namespace weft
