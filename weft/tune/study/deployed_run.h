// What a trained run is as it is deployed: how large its file is, and how long the engine takes for one sample.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "weft/tune/study/objective.h"

namespace weft::tune {

/// By processes of `program`, `weft compile` and, for the latency, `weft infer` with a batch of one on `threads`
/// threads; the file is removed again. nullopt where `stop_requested` says so meanwhile. Error(data) with the program's
/// message where the run cannot be deployed. The latency means something only where nothing else runs.
std::optional<Deployed> measure_deployed(const std::string& program, const std::filesystem::path& run, int64_t threads,
                                         bool with_latency, const std::function<bool()>& stop_requested);

/// The last line that the program said, without its name: "weft: 'x.csv' is empty". Empty where there is none.
std::string last_message(const std::string& output);

}  // namespace weft::tune
