// A trained model ready to predict, and what `weft predict` makes of each kind of data.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/data/load/loader.h"
#include "weft/infer/sampling.h"
#include "weft/infer/token_reader.h"
#include "weft/library/library.h"
#include "weft/program/driver.h"
#include "weft/run/loaded_run.h"

namespace weft::infer {

struct PredictOptions {
  std::string run, checkpoint = "auto";
  std::string weights;                              // in place of a checkpoint, or without a run
  std::string model, data, input, mean, deviation;  // of such weights (weights.h)
  std::vector<std::string> set;
  std::vector<std::string> files;
  int64_t top = 5;
  int64_t length = 200;      // characters to write behind a text
  SamplingOptions sampling;  // of their draw
  int64_t seed = 1;          // likewise
  std::string masks;         // folder to write masks to; empty: none
  int64_t threads = 0;
  std::string precision;        // empty: as in training
  std::string format = "text";  // text | json | jsonl | csv
  /// No text is printed while the files are predicted.
  bool json() const { return format != "text"; }
};

class PredictionModel {
 public:
  /// Keeps a reference to the library. `precision`: empty: as in training.
  PredictionModel(const Library& library, run::LoadedRun run, const std::string& precision);
  PredictionModel(const PredictionModel&) = delete;
  PredictionModel& operator=(const PredictionModel&) = delete;

  /// Of one batch, whose rows from `count` on mean nothing: "probabilities" [rows,classes] or "values" [N,K], or what
  /// the task says (TaskEntry::answer).
  Tensor run(const data::Batch& batch);
  /// Of a model of sequences that keeps what it needs of the tokens before; null where the model cannot. Keeps a
  /// reference to this.
  std::unique_ptr<TokenReader> make_token_reader();
  const std::vector<data::DatasetKind>& data_kinds() const { return library_.data; }
  const spec::DataDescription& data() const { return run_.data; }
  const spec::RunSpec& spec() const { return run_.spec; }
  /// Whether it is data of a kind, "csv:FILE", rather than a file.
  bool names_data(const std::string& text) const;
  /// The first of these texts that names data and is not the name of a file; null where there is none.
  const std::string* find_data(const std::vector<std::string>& texts) const;
  /// "class 3" where the data have no names.
  std::string class_name(int64_t index) const;

 private:
  const Library& library_;
  const std::unique_ptr<Device> device_;
  run::LoadedRun run_;
  program::Program program_;
  program::Driver driver_;
};

/// One sample of zeros, with room for its target.
data::Batch empty_batch(const data::DatasetInfo& info);

/// Each prints its results, one file after the other, and gives the exit code, 1 where a file could not be read: it is
/// named on stderr, and the others follow all the same.
int predict_images(PredictionModel& model, const PredictOptions& options);
/// Pictures of lines of text: what they say.
int transcribe_images(PredictionModel& model, const PredictOptions& options);
/// Pictures whose pixels have classes: the share of each; masks where `options.masks` names a folder.
int segment_images(PredictionModel& model, const PredictOptions& options);
/// Lines of texts: the class of each.
int classify_lines(PredictionModel& model, const PredictOptions& options);
/// Tables, or all samples of data that a spec names: the class or the values of each.
int predict_rows(PredictionModel& model, const PredictOptions& options);
/// Lines of texts: what each becomes.
int translate_lines(PredictionModel& model, const PredictOptions& options);
/// Texts: what follows them.
int continue_texts(PredictionModel& model, const PredictOptions& options);

/// Images, rows, lines of text or all samples of data that a spec names, as the model reads them: the classes or the
/// values of each.
int predict_samples(PredictionModel& model, const PredictOptions& options);

/// Class indices, most likely first, of one row of probabilities.
std::vector<int64_t> ranking(const float* probabilities, int64_t classes, int64_t top);

}  // namespace weft::infer
