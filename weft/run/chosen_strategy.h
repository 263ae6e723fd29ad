// strategy = "auto" of a run that begins: what is chosen becomes the recipe's keys, by which the run goes on.
#pragma once

#include <functional>
#include <string>

#include "weft/comm/communicator.h"
#include "weft/library/library.h"
#include "weft/predict/strategy.h"
#include "weft/spec/run_spec.h"

namespace weft::run {

/// Where the recipe says so, the first rank chooses, `note` takes the table, and all ranks get its recipe. Else nothing
/// happens. All ranks call it together; null: the process is alone. Error(usage) where no strategy fits.
void choose_strategy(const Library& library, spec::RunSpec& spec, comm::Communicator* ranks,
                     const std::function<void(const std::string&)>& note);

/// The recipe by the strategy that was chosen for it, resolved.
spec::RunSpec chosen_spec(const Library& library, const predict::Strategy& chosen, spec::RunSpec spec);

}  // namespace weft::run
