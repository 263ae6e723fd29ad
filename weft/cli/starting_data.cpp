#include "weft/cli/starting_data.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/say.h"
#include "weft/data/dataset/data_spec.h"
#include "weft/data/open_dataset.h"

namespace weft::cli {

namespace {

OpenedData open_both(const Library& library, const std::string& spec) {
  OpenedData opened{spec, data::open_dataset(library.data, spec, data::Split::train), nullptr};
  if (data::has_test_split(library.data, spec))
    opened.test = data::open_dataset(library.data, spec, data::Split::test, opened.training->info().encoding);
  return opened;
}

}  // namespace

OpenedData open_for_recipe(const Library& library, const std::string& text) {
  try {
    return open_both(library, text);
  } catch (const Error& error) {
    data::DataSpec spec = data::parse_data_spec(text);
    const bool says_task = std::any_of(spec.options.begin(), spec.options.end(),
                                       [](const auto& option) { return option.first == "task"; });
    const std::string message = error.what();
    const size_t advice = message.find("; to predict the number, add task=regression");
    if (error.kind() != ErrorKind::data || spec.kind != "csv" || says_task || advice == message.npos) throw;
    spec.options.emplace_back("task", "regression");
    OpenedData opened = open_both(library, data::print_data_spec(spec));
    say(message.substr(0, advice) + ": the recipe predicts the number, by task=regression");
    return opened;
  }
}

}  // namespace weft::cli
