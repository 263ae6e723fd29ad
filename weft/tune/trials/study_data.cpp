#include "weft/tune/trials/study_data.h"

#include "weft/base/error.h"
#include "weft/program/run_data.h"
#include "weft/tune/trials/trial_plan.h"

namespace weft::tune {

spec::DataDescription data_of(const StudySettings& settings, const Library& library) {
  spec::RunSpec spec = base_spec(settings, library);
  spec.batch = 1;  // that of the recipe may be larger than the data where batches are searched
  spec.batch_schedule = {};
  return program::open_run_data(library, spec).description;
}

void require_same_data(Study& study, const Library& library) {
  const spec::DataDescription now = data_of(study.settings(), library);
  const std::string known = study.data();
  if (known.empty()) return study.set_data(spec::print_data_description(now));
  const spec::DataDescription then =
      spec::parse_data_description(known, (study.folder() / "study.db").string() + ", data");
  if (const std::string difference = spec::difference_of(then, now); !difference.empty())
    fail(ErrorKind::data,
         "the data of the study '{}' have changed: {}; its trials cannot be compared with new ones: put the data back, "
         "or begin another study",
         study.folder().string(), difference);
}

}  // namespace weft::tune
