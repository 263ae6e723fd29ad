// The data that a first recipe is made for: `weft init SPEC`, `weft tune --data SPEC`.
#pragma once

#include <memory>
#include <string>

#include "weft/data/dataset/dataset.h"
#include "weft/library/library.h"

namespace weft::cli {

struct OpenedData {
  std::string spec;
  std::unique_ptr<data::Dataset> training, test;  // test: null where there are none
};

/// A table of which an error says that its labels are better predicted as numbers is opened once more for its values; a
/// line says so.
OpenedData open_for_recipe(const Library& library, const std::string& text);

}  // namespace weft::cli
