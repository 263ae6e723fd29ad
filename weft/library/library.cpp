#include "weft/library/library.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft {

namespace {

void require_new(const std::string& what, const std::string& name, bool known, bool complete, const char* parts) {
  if (name.empty() || !complete)
    fail(ErrorKind::usage, "the {} '{}' is not complete: it needs a name and {}", what, name, parts);
  if (known) fail(ErrorKind::usage, "there is {} '{}' already; choose another name", what, name);
}

template <typename Entries>
bool has_name(const Entries& entries, const std::string& name) {
  return std::any_of(entries.begin(), entries.end(), [&](const auto& entry) { return entry.name == name; });
}

}  // namespace

void Library::add_op(OpDef op, PrepareKernel reference) {
  const bool complete = !op.outputs.empty() && op.infer && reference;
  require_new("op", op.name, ops.find(op.name) != nullptr, complete, "outputs, a shape rule (infer) and a kernel");
  kernels.add(op.name, {"reference", function_kernel("reference", std::move(reference))});
  ops.add(std::move(op));
}

void Library::add_model(models::ModelEntry model) {
  require_new("model", model.name, has_name(models, model.name), static_cast<bool>(model.build), "a build function");
  models.push_back(std::move(model));
}

void Library::add_data(data::DatasetKind kind) {
  require_new("kind of data", kind.name, has_name(data, kind.name), static_cast<bool>(kind.open), "an open function");
  data.push_back(std::move(kind));
}

models::Model build_model(const Library& library, const std::string& name, const models::ModelInput& input,
                          const models::ModelOptions& options, models::Mode mode) {
  return models::build(library.ops, models::find_model(library.models, name), input, options, mode);
}

}  // namespace weft
