#include "weft/run/loaded_run.h"

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/say.h"
#include "weft/run/checkpoint/store.h"
#include "weft/run/run_directory.h"

namespace weft::run {

LoadedRun load_run(const std::filesystem::path& directory, const std::string& which, int64_t threads,
                   const Entries& entries) {
  const RunDirectory run = RunDirectory::open(directory);
  LoadedRun loaded;
  loaded.spec = run.read_spec(entries);
  spec::choose_threads(loaded.spec, threads);
  loaded.data = run.read_data();
  const CheckpointStore store(run.checkpoints(), loaded.spec.checkpoint.keep);
  std::error_code code;
  const bool was_chosen =
      spec::has_validation(loaded.spec) && std::filesystem::exists(run.checkpoints() / "best", code);
  if (which == "best" || (which == "auto" && was_chosen)) {
    Checkpoint best = store.read_best();
    loaded.checkpoint = best.path.string();
    loaded.state = std::move(best.state);
    return loaded;
  }
  std::optional<Checkpoint> newest = store.read_newest(say, false);
  if (!newest)
    fail(ErrorKind::usage, "'{}' has no checkpoint yet; train on with `weft train --resume {}`", directory.string(),
         quoted_for_shell(directory.string()));
  loaded.checkpoint = newest->path.string();
  loaded.state = std::move(newest->state);
  return loaded;
}

}  // namespace weft::run
