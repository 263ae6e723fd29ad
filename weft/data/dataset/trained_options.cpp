#include "weft/data/dataset/trained_options.h"

#include <optional>

#include "weft/base/error.h"

namespace weft::data {

void require_trained(const SpecOptions& options, const std::string& name, const std::string& trained) {
  const std::optional<std::string> given = options.find(name);
  if (given && *given != trained)
    fail(ErrorKind::usage, "[{}] {}={}: the model was trained with {}; leave it away", options.kind(), name, *given,
         trained);
}

void require_trained(const SpecOptions& options, const std::string& name, int64_t trained) {
  require_trained(options, name, std::to_string(trained));
}

}  // namespace weft::data
