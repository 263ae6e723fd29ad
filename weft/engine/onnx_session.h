// Runs an ONNX model: lowers it for the sizes of its inputs, compiles that, and keeps the plans for the next run.
//
// A plan belongs to the types of the inputs, and to the numbers of those that decide shapes. The session keeps a
// bounded number of plans, the last used ones, in one arena; what they fold alike of the weights exists once. What no
// graph can hold runs on the host between them (onnx/lower).
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weft/compile/compile.h"
#include "weft/device/arena.h"
#include "weft/engine/shared_constants.h"
#include "weft/onnx/lower/lower.h"
#include "weft/runtime/executor.h"

namespace weft::engine {

/// What a new plan takes, for messages.
struct PlanCost {
  double seconds = 0;       // of lowering and compiling it
  int64_t arena_bytes = 0;  // of what is computed
  int64_t constant_bytes = 0;
  size_t nodes = 0;
  int64_t multiply_adds = 0;  // of convolutions and matrix products
  size_t plans = 0;           // that the session now has
};

struct SessionOptions {
  size_t most_plans = 16;
  CompileOptions compile = {};
  std::function<void(const PlanCost&)> on_plan = {};  // may be empty
};

class OnnxSession {
 public:
  /// Keeps references to registry and device. Error(usage) lists what weft cannot import.
  OnnxSession(onnx::Model model, const OpRegistry& registry, const Device& device, SessionOptions options = {});
  ~OnnxSession();

  const onnx::Model& model() const { return lowerable_.model(); }
  /// The inputs that a run wants: those without a value in the file.
  std::vector<onnx::ValueInfo> inputs() const;

  /// Values by the names of the model's outputs, for values by the names of its inputs. Error(usage) or Error(shape)
  /// where an input is missing, unknown, or not what the model says.
  std::map<std::string, onnx::HostValue> run(const std::map<std::string, onnx::HostValue>& inputs);

  /// Makes the plans for such inputs; runs only what later plans depend on.
  void prepare(const std::map<std::string, onnx::HostValue>& inputs);

  /// Of the largest plan that it had: all lie in one arena.
  int64_t arena_bytes() const { return arena_ ? arena_->bytes() : 0; }
  /// Of the plans that it has, each content once.
  int64_t constant_bytes() const;
  size_t plans() const { return plans_.size(); }

 private:
  struct Plan;
  using Values = std::map<std::string, onnx::HostValue>;

  Values check_inputs(const Values& inputs) const;
  /// Segment after segment; the values that are there at the end. The last segment's graph runs where `runs_last`.
  Values run_segments(Values values, bool runs_last);
  Plan& find_plan(const Values& values, size_t node);
  void add_plan(std::unique_ptr<Plan> plan);
  /// Makes it where the plan has none. Null where nothing is computed.
  Executor* executor_of(Plan& plan);
  std::string key_of(const Values& values, size_t node, const std::set<std::string>& known) const;
  void run_on_host(const onnx::OnnxNode& node, Values& values);
  std::vector<onnx::HostValue> run_body(const onnx::OnnxGraph& graph, const std::vector<onnx::HostValue>& inputs,
                                        const Values& around);

  const OpRegistry& registry_;
  const Device& device_;
  const SessionOptions options_;
  SharedConstants constants_;
  const SharingBackend sharing_;  // the device, over these constants
  const onnx::LowerableModel lowerable_;
  std::vector<std::string> known_outputs_;            // initializers that are outputs
  std::map<size_t, std::set<std::string>> deciding_;  // by a segment's first node: values whose numbers are of the key
  std::unique_ptr<Arena> arena_;                      // longer than the plans' executors, which lie in it
  std::list<std::unique_ptr<Plan>> plans_;            // the last used first
  std::map<const onnx::OnnxGraph*, std::unique_ptr<OnnxSession>> bodies_;  // of nodes that the host runs
};

}  // namespace weft::engine
