#include "weft/tasks/entries.h"

namespace weft::tasks {

std::vector<TaskEntry> all_tasks() {
  return {classification_entry(), regression_entry(),    language_model_entry(),
          translation_entry(),    transcription_entry(), segmentation_entry()};
}

}  // namespace weft::tasks
