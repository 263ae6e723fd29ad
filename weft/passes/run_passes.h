// Runs a table of passes: times, dumps and verifies each.
#pragma once

#include <string>
#include <vector>

#include "weft/passes/pipeline.h"

namespace weft::passes {

/// What a user calls a pass: by its name, or one that it had before. Error(usage) where the table has none of that
/// name.
std::string known_name(const std::vector<Pass>& table, const std::string& name);

/// As run_pipeline(), of another table.
Graph run_passes(const std::vector<Pass>& table, const Graph& graph, const PassContext& context,
                 const PipelineOptions& options, std::vector<PassReport>* reports = nullptr);

}  // namespace weft::passes
