#include "weft/cli/deploy/compiled_model.h"

#include <algorithm>
#include <filesystem>

#include "weft/base/error.h"
#include "weft/onnx/file/model_file.h"
#include "weft/ops/all.h"

namespace weft::cli {

OpRegistry ops_of_files(const Library& library) {
  OpRegistry ops = ops::make_inference_registry();
  const OpRegistry standard = ops::make_registry();
  for (const auto& [name, op] : library.ops.all())
    if (standard.find(name) == nullptr) ops.add(op);
  return ops;
}

engine::DeployedModel compiled_model(const Library& library, const ModelSource& source,
                                     deploy::CompileModelOptions options) {
  std::error_code code;
  const std::filesystem::path path = source.model;
  const bool is_known = std::any_of(library.models.begin(), library.models.end(), [&](const auto& entry) {
    return entry.name == source.model && !entry.is_made_of_file;
  });
  if (options.source.empty()) options.source = path.lexically_normal().string();
  const bool is_run = std::filesystem::is_directory(path, code);
  const bool is_model = is_known && !std::filesystem::exists(path, code);
  if (source.checkpoint && !is_run)
    fail(ErrorKind::usage, "--checkpoint is of a run, and '{}' is none; leave it away", source.model);
  if (source.seed && !is_model)
    fail(ErrorKind::usage, "--seed draws the weights of a model of `weft models`, and '{}' has its own; leave it away",
         source.model);
  if (is_run)
    return deploy::compile_run(library, run::load_run(path, source.checkpoint.value_or("auto"), 0, library), options);
  if (is_model) return deploy::compile_zoo_model(library, source.model, source.seed.value_or(0), options);
  if (!std::filesystem::exists(path, code))
    fail(ErrorKind::usage, "'{}' is no run directory, no ONNX file and no model; `weft models` lists models",
         source.model);
  return deploy::compile_onnx(library, onnx::read_model(path), options);
}

}  // namespace weft::cli
