// What is learned from data, as an entry: which loss and metrics it has, and what predictions look like. Data name
// their task (DatasetInfo::task).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weft/data/dataset/dataset.h"
#include "weft/graph/graph.h"
#include "weft/library/metric.h"

// Only named here: what stands above this folder implements the tasks (weft/tasks).
namespace weft::infer {
class PredictionModel;
struct PredictOptions;
}  // namespace weft::infer

namespace weft {

struct TaskEntry {
  std::string name;          // "translation"
  std::string summary = {};  // "a sequence of tokens for a sequence of tokens"
  /// The loss where neither the recipe nor the model names one; empty: cross-entropy of classes, squares of values.
  std::string loss = {};
  std::vector<std::string> metrics = {};  // that evaluations measure, in the order in which reports show them
  std::string decided_by = "loss";        // one of them, or the loss: it makes a checkpoint the best
  std::string loss_unit = {};             // "nats per token"; empty: none worth naming

  /// What `weft predict` reads, from the logits; empty: their softmax, and of real values the logits themselves.
  std::function<ValueId(Graph&, ValueId logits, const std::string& name)> answer = {};
  std::string answer_name = "probabilities";  // the output of the graph of predictions
  /// Prints the predictions and returns the exit code. Empty: `weft predict` says that it cannot.
  std::function<int(infer::PredictionModel&, const infer::PredictOptions&)> predict = {};
  std::string predicted_file = {};  // what it reads, for hints: "BEGINNING.txt"; empty: as the samples are
  bool predicts_data = false;       // predict() takes all samples of data that are named too: "csv:FILE"

  /// An evaluation in one line; empty: each metric by its label, then the loss.
  std::function<std::string(double loss, const MetricValues&)> in_words = {};
};

}  // namespace weft
