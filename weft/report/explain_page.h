// What `weft explain --html` writes: time, memory, exchange and curves of a run on one page, in one file.
#pragma once

#include <optional>
#include <string>

#include "weft/plot/figure.h"
#include "weft/report/explained.h"

namespace weft::report {

struct ExplainPage {
  std::string run;                          // its name
  std::string headline;                     // what was measured
  const Explained& explained;               // with times
  size_t rows = 20;                         // nodes to list
  std::string audit = {};                   // what training measured; empty: it has not ended
  std::string exchange = {};                // what the ranks' exchange adds up to; empty: one rank
  std::optional<plot::Figure> curves = {};  // nullopt: nothing is recorded yet
};

/// A whole HTML document that needs no other file, no network and no script, in the light or dark colours that the
/// reader has chosen.
std::string explain_page(const ExplainPage& page);

}  // namespace weft::report
