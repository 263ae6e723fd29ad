#include "weft/tune/trials/trial_server.h"

#include "weft/program/run_data.h"
#include "weft/tune/trials/trial_plan.h"

namespace weft::tune {

std::unique_ptr<WorkerServer> serve_study(const Library& library, const Study& study, const Address& address,
                                          double silence_seconds) {
  const StudySettings& settings = study.settings();
  const spec::RunSpec spec = base_spec(settings, library);
  return std::make_unique<WorkerServer>(
      address, ServedStudy{.name = std::filesystem::absolute(study.folder()).lexically_normal().filename().string(),
                           .token = kept_token(study.folder() / "token"),
                           .recipe = settings.recipe,
                           .set = settings.set,
                           .data = spec::print_data_description(program::open_run_data(library, spec).description),
                           .threads = settings.threads,
                           .silence_seconds = silence_seconds});
}

}  // namespace weft::tune
