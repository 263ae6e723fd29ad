// A kernel that is a short sequence of oneDNN primitives over the node's operands and its workspace.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/cpu/onednn/primitive_desc.h"
#include "weft/device/kernel.h"

namespace weft::onednn {

/// Where a primitive's argument lives when the kernel runs.
struct Operand {
  enum class Where { input, output, workspace } where = Where::input;
  int64_t position = 0;  // index of the operand, or bytes into the workspace
};
inline Operand input(int64_t index) { return {Operand::Where::input, index}; }
inline Operand output(int64_t index) { return {Operand::Where::output, index}; }

struct Argument {
  int id = 0;  // DNNL_ARG_*
  MemoryDesc desc;
  Operand operand;
};

class CallKernel final : public Kernel {
 public:
  CallKernel(std::shared_ptr<const Engine> engine, int threads);

  /// Bytes of the workspace for a tensor that one call writes and a later one reads.
  Operand reserve(const MemoryDesc& desc);
  /// Generates the primitive's code. Calls run in the order in which they were added.
  void add_call(const PrimitiveDesc& desc, const std::vector<Argument>& arguments);

  std::string name() const override { return name_; }
  int64_t workspace_bytes() const override { return reserved_bytes_ + scratchpad_bytes_; }
  /// Does not allocate; oneDNN itself may. Error(internal) where oneDNN reports a failure.
  void run(const KernelArguments& arguments) override;
  /// "onednn:" and the implementation of the main call.
  void set_name(std::string name) { name_ = std::move(name); }

 private:
  struct Slot {
    MemoryHandle memory;
    Operand operand;
    void* bound = nullptr;
  };
  struct Call {
    PrimitiveHandle primitive;
    std::vector<Slot> slots;
    std::vector<dnnl_exec_arg_t> arguments;
    bool has_scratchpad = false;  // the last slot
  };

  std::shared_ptr<const Engine> engine_;
  int threads_;
  std::string name_;
  std::vector<Call> calls_;
  int64_t reserved_bytes_ = 0, scratchpad_bytes_ = 0;
};

}  // namespace weft::onednn
