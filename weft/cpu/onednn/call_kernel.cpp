#include "weft/cpu/onednn/call_kernel.h"

#include <algorithm>

namespace weft::onednn {

CallKernel::CallKernel(std::shared_ptr<const Engine> engine, int threads)
    : engine_(std::move(engine)), threads_(threads) {}

Operand CallKernel::reserve(const MemoryDesc& desc) {
  const Operand operand{Operand::Where::workspace, reserved_bytes_};
  reserved_bytes_ += align_up(desc.bytes());
  return operand;
}

void CallKernel::add_call(const PrimitiveDesc& desc, const std::vector<Argument>& arguments) {
  const ThreadScope scope(threads_);
  Call call;
  dnnl_primitive_t primitive = nullptr;
  require(dnnl_primitive_create(&primitive, desc.get()), "dnnl_primitive_create");
  call.primitive.reset(primitive);
  const auto add_slot = [&](int id, const MemoryDesc& memory_desc, Operand operand) {
    dnnl_memory_t memory = nullptr;
    require(dnnl_memory_create(&memory, memory_desc.get(), engine_->get(), DNNL_MEMORY_NONE), "dnnl_memory_create");
    call.slots.push_back({MemoryHandle(memory), operand});
    call.arguments.push_back({id, memory});
  };
  for (const auto& argument : arguments) add_slot(argument.id, argument.desc, argument.operand);
  const MemoryDesc scratchpad = desc.memory_desc(dnnl_query_scratchpad_md);
  if (scratchpad.bytes() > 0) {
    add_slot(DNNL_ARG_SCRATCHPAD, scratchpad, {});
    call.has_scratchpad = true;
    scratchpad_bytes_ = std::max(scratchpad_bytes_, align_up(scratchpad.bytes()));
  }
  calls_.push_back(std::move(call));
}

void CallKernel::run(const KernelArguments& arguments) {
  const ThreadScope scope(threads_);
  auto* workspace = static_cast<std::byte*>(arguments.workspace);
  const auto pointer = [&](Operand operand) -> void* {
    const auto index = static_cast<size_t>(operand.position);
    if (operand.where == Operand::Where::input) return const_cast<void*>(arguments.inputs[index]);
    if (operand.where == Operand::Where::output) return arguments.outputs[index];
    return workspace + index;
  };
  for (auto& call : calls_) {
    for (auto& slot : call.slots) {
      const bool is_scratchpad = call.has_scratchpad && &slot == &call.slots.back();
      void* where = is_scratchpad ? workspace + reserved_bytes_ : pointer(slot.operand);
      // oneDNN 2 writes the padding of a blocked tensor whenever a handle is set, so only where it has changed.
      if (where == slot.bound) continue;
      require(dnnl_memory_set_data_handle(slot.memory.get(), where), "dnnl_memory_set_data_handle");
      slot.bound = where;
    }
    require(dnnl_primitive_execute(call.primitive.get(), engine_->stream(), static_cast<int>(call.arguments.size()),
                                   call.arguments.data()),
            "dnnl_primitive_execute");
  }
}

}  // namespace weft::onednn
