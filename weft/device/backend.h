// What planning has to ask the machine that will run a graph. Runtimes implement it; passes and plans see no more.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/graph/graph.h"

namespace weft {

struct LayoutChoice {
  std::vector<Layout> inputs, outputs;
};

struct KernelChoice {
  std::string kernel;  // e.g. "onednn:jit:avx512_core", "native:batch_norm", "reference"
  int64_t workspace_bytes = 0;
  std::vector<std::string> declined;  // "onednn: no, because ..." for each better candidate that could not serve
};

/// Where a value lies: in the memory that the device computes in, or in the host's. Where these are one, as on the CPU,
/// everything is the device's.
enum class Space { device, host };

/// How a device wants values placed in its memory.
struct MemoryRules {
  /// Host code cannot touch it: nodes copy what goes from one to the other (graph/space_copies.h).
  bool is_separate = false;
  int64_t block_bytes = kAlignment;   // no two values that live at a time share a block; a multiple of kAlignment
  bool values_end_at_blocks = false;  // but for alignment to kAlignment; else they begin there
  int64_t guard_bytes = 0;            // left free behind the blocks of each value, a multiple of block_bytes
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual MemoryRules memory_rules() const { return {}; }
  /// For ops with LayoutRule::kernel: the layouts that the best kernel wants for this node. The signature's layouts
  /// say what the operands have now (what is known); the answer may keep or change each of them.
  /// nullopt: the node runs on plain layouts.
  virtual std::optional<LayoutChoice> preferred_layouts(const NodeSignature& node) const = 0;
  /// True where some fast kernel runs this node with exactly the layouts in the signature; of an exchange, some kernel.
  virtual bool supports_layouts(const NodeSignature& node) const = 0;
  /// The first candidate that serves the node. Error(usage) where none does.
  virtual KernelChoice choose_kernel(const NodeSignature& node) const = 0;
  /// True where a kernel for this node would be faster with workspace that is granted to it
  /// (graph/granted_workspace.h).
  virtual bool takes_granted_workspace(const NodeSignature&) const { return false; }
  /// What the node makes of these operands, computed now on the host: constants are folded with it. nullopt where the
  /// machine does not compute while a graph is compiled.
  virtual std::optional<std::vector<Tensor>> evaluate(const NodeSignature&, const std::vector<Tensor>&) const {
    return std::nullopt;
  }
  /// True where the machine multiplies numbers of this type faster than those of f32.
  virtual bool computes_fast(DType dtype) const = 0;
  /// What it lacks for that, for messages: "this CPU has no instructions for bf16".
  virtual std::string what_lacks(DType dtype) const {
    return "this device does not multiply " + std::string(name_of(dtype)) + " faster than f32";
  }
};

}  // namespace weft
