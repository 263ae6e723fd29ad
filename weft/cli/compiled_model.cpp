#include "weft/cli/compiled_model.h"

#include <algorithm>
#include <filesystem>

#include "weft/base/error.h"
#include "weft/onnx/file/model_file.h"

namespace weft::cli {

engine::DeployedModel compiled_model(const Library& library, const ModelSource& source,
                                     deploy::CompileModelOptions options) {
  std::error_code code;
  const std::filesystem::path path = source.model;
  const bool is_known = std::any_of(library.models.begin(), library.models.end(), [&](const auto& entry) {
    return entry.name == source.model && !entry.is_made_of_file;
  });
  if (options.source.empty()) options.source = path.lexically_normal().string();
  if (std::filesystem::is_directory(path, code))
    return deploy::compile_run(library, run::load_run(path, source.checkpoint, 0, library), options);
  if (is_known && !std::filesystem::exists(path, code))
    return deploy::compile_zoo_model(library, source.model, source.seed, options);
  if (!std::filesystem::exists(path, code))
    fail(ErrorKind::usage, "'{}' is no run directory, no ONNX file and no model; `weft models` lists models",
         source.model);
  return deploy::compile_onnx(library, onnx::read_model(path), options);
}

}  // namespace weft::cli
