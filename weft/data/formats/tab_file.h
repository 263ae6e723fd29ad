// Lines of two fields with a tab between them, as pairs of texts, labelled texts and lists of pictures come: UTF-8,
// gzip or not, lines may end as on Windows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::data {

struct TabLine {
  int64_t number;                  // from 1 on
  std::string_view first, second;  // without blanks around them; of neither nothing is left
};

class TabFile {
 public:
  /// The first `skipped_lines` are no data. `fields` in words for messages, such as "SOURCE<TAB>TARGET". Error(io) for
  /// a missing file; Error(data) for what is no UTF-8, for a line without a tab and where no line is left.
  TabFile(const std::string& kind, const std::string& path, const std::string& fields, int64_t skipped_lines = 0);
  TabFile(const TabFile&) = delete;
  TabFile& operator=(const TabFile&) = delete;

  const std::string& path() const { return path_; }
  const std::vector<TabLine>& lines() const { return lines_; }
  /// "[pairs] 'FILE':12", for messages.
  std::string where(const TabLine& line) const;

  /// Leaves a line out that is no use for another reason, such as "longer than 20 characters".
  void leave_out(const std::string& reason, int64_t line_number);
  /// What was left out, counted, with the first line of each kind; empty where nothing was.
  std::string note() const;

 private:
  struct LeftOut {
    std::string reason;
    int64_t count = 0, first = 0;
  };
  std::string kind_, path_, content_;
  std::vector<TabLine> lines_;
  std::vector<LeftOut> left_out_;
};

}  // namespace weft::data
