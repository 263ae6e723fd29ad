// What can be learned, a file each: the tasks that come with weft.
#pragma once

#include <vector>

#include "weft/library/task.h"

namespace weft::tasks {

std::vector<TaskEntry> all_tasks();

TaskEntry classification_entry();
TaskEntry regression_entry();
TaskEntry language_model_entry();
TaskEntry translation_entry();
TaskEntry transcription_entry();
TaskEntry segmentation_entry();

}  // namespace weft::tasks
