#include "weft/tune/trials/trial_server.h"

#include "weft/tune/trials/study_data.h"

namespace weft::tune {

std::unique_ptr<WorkerServer> serve_study(const Library& library, const Study& study, const Address& address,
                                          double silence_seconds) {
  const StudySettings& settings = study.settings();
  return std::make_unique<WorkerServer>(
      address, ServedStudy{.name = std::filesystem::absolute(study.folder()).lexically_normal().filename().string(),
                           .token = kept_token(study.folder() / "token"),
                           .recipe = settings.recipe,
                           .set = settings.set,
                           .data = spec::print_data_description(data_of(settings, library)),
                           .threads = settings.threads,
                           .silence_seconds = silence_seconds});
}

}  // namespace weft::tune
