// The data of a run: both splits, how they are normalised and how they are fed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/data/dataset/dataset.h"
#include "weft/data/load/loader.h"
#include "weft/library/library.h"
#include "weft/models/model.h"
#include "weft/spec/course.h"
#include "weft/spec/data_description.h"
#include "weft/spec/run_spec.h"
#include "weft/spec/step_shape.h"

namespace weft::program {

struct RunData {
  std::unique_ptr<data::Dataset> training;
  std::unique_ptr<data::Dataset> validation;  // null: the spec asks for none
  std::unique_ptr<data::Dataset> test;        // null: the spec names no test files
  spec::DataDescription description;

  /// Found so far, in all parts.
  int64_t damaged_samples() const {
    int64_t found = training->damaged_samples();
    for (const data::Dataset* set : evaluated()) found += set->damaged_samples();
    return found;
  }
  /// All that is evaluated.
  std::vector<data::Dataset*> evaluated() const {
    std::vector<data::Dataset*> sets;
    for (data::Dataset* set : {validation.get(), test.get()})
      if (set != nullptr) sets.push_back(set);
    return sets;
  }
};

/// Of data of their own for validation (spec.validation is no share): which they are, with absolute paths. "DIR" is of
/// the same kind and has the same options as the training data.
std::string validation_data_spec(const Library& library, const spec::RunSpec& spec);

/// A line for each part of which some class has no sample, with the classes' names. Empty where targets are no classes.
std::vector<std::string> describe_missing_classes(const RunData& data);

/// The part of each batch that this process takes as one of several ranks.
struct BatchShare {
  int share = 0, shares = 1;
};

/// Opens the data that the spec names. Error(usage) where a batch is larger than the training set, or cannot be divided
/// into `shares` equal parts.
RunData open_run_data(const Library& library, const spec::RunSpec& spec, int shares = 1);

/// Error(data) where targets of `data` are not what those of the training data are, each as a loader gives them.
void require_equal_targets(const data::DatasetInfo& trained, const data::DatasetInfo& data);

struct EvaluationData {
  std::unique_ptr<data::Dataset> dataset;
  std::string spec;  // as it was opened
  data::Split split = data::Split::test;
  bool own = false;  // the run's own data: all that is not its test split was trained on
};

/// The data on which `weft eval` measures a trained model: the test split, or all of it for data that are not the run's
/// own and have no two splits. Data of the run's kind and path are its own: options that `data_spec` omits come from
/// the run, and without test data they are measured as they were trained on.
EvaluationData open_evaluation_data(const Library& library, const std::string& data_spec, const spec::RunSpec& run,
                                    const spec::DataDescription& trained);

models::ModelInput model_input(const spec::DataDescription& description, const spec::StepShape& shape);

/// The stage whose steps hold the most numbers at once.
spec::Stage largest_stage(const spec::RunSpec& spec, const spec::DataDescription& description);

/// Shuffled, augmented, whole batches only; in the stages of the spec.
data::LoaderOptions training_loader_options(const spec::RunSpec& spec, const spec::DataDescription& description,
                                            const BatchShare& share = {}, const Entries& entries = standard_entries());
/// In order, unchanged, to the last sample.
data::LoaderOptions evaluation_loader_options(const spec::RunSpec& spec, const spec::DataDescription& description,
                                              const BatchShare& share = {});

/// What a loader's batches take in memory.
int64_t loader_bytes(const data::LoaderOptions& options, const spec::DataDescription& description);

}  // namespace weft::program
