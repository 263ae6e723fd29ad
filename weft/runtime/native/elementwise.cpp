// Elementwise ops and fused programs of them: an interpreter whose instructions are vector loops over chunks that stay
// in the first-level cache, so that a whole program costs one pass over memory.
#include <fmt/format.h>

#include <array>

#include "weft/base/parallel.h"
#include "weft/ops/fused.h"
#include "weft/runtime/native/broadcast_operand.h"
#include "weft/runtime/native/channel_view.h"
#include "weft/runtime/native/native.h"

namespace weft::native {

namespace {

/// What an instruction reads; those that it does not have repeat `a`.
struct Operands {
  const float *a, *b, *c;
  float literal, second_literal;
};
using InstructionLoop = void (*)(float* out, const Operands& operands, int64_t count);

struct Loops {
  InstructionLoop (*of)(ops::ScalarOp);
  InstructionLoop equal_integers, greater_integers, greater_equal_integers;
  void (*fill)(float* out, float value, int64_t count);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/runtime/native/elementwise_loops.h"
#include "weft/runtime/native/multiversion.h"

namespace weft::native {

namespace {

constexpr int64_t kChunk = 1024;         // elements: 4 KB per slot
constexpr size_t kMaximumSlots = 64;     // inputs and instructions of one program
constexpr int64_t kChunksPerThread = 8;  // less is not worth waking a thread

struct Program {
  std::vector<ops::ScalarInstruction> instructions;
  std::vector<int64_t> results;
  std::vector<InstructionLoop> loops;  // per instruction
};

/// Where the values of a slot lie while a chunk is worked on.
struct Slot {
  enum class Place { input, scratch, result };
  Place place = Place::input;
  size_t index = 0;  // of the input, the scratch buffer or the result
};

class Elementwise : public Kernel {
 public:
  Elementwise(const NodeSignature& node, Program program, std::vector<BroadcastOperand> operands, int threads,
              const Loops& loops)
      : program_(std::move(program)),
        operands_(std::move(operands)),
        loops_(loops),
        threads_(threads),
        stored_(storage_elements(node.outputs[0].shape, node.outputs[0].layout)),
        name_("native:" + node.op->name) {
    if (stored_ != node.outputs[0].elements()) padded_ = channel_view(node.outputs[0]);
    place_slots();
  }

  std::string name() const override { return name_; }
  int64_t workspace_bytes() const override { return threads_ * buffers_ * kChunk * 4; }

  void run(const KernelArguments& arguments) override {
    const int64_t chunks = (stored_ + kChunk - 1) / kChunk;
    const int parts = static_cast<int>(std::clamp<int64_t>(chunks / kChunksPerThread, 1, threads_));
    parallel_run(threads_, parts, [&](int thread, int total) {
      const auto [begin, end] = split_range(chunks, thread, total);
      auto* scratch = static_cast<float*>(arguments.workspace) + thread * buffers_ * kChunk;
      for (size_t i = 0; i < operands_.size(); ++i)  // once for all chunks
        if (operands_[i].kind == BroadcastOperand::Kind::scalar)
          loops_.fill(scratch + static_cast<int64_t>(input_buffers_[i]) * kChunk,
                      *static_cast<const float*>(arguments.inputs[i]), kChunk);
      for (int64_t chunk = begin; chunk < end; ++chunk)
        run_chunk(arguments, scratch, chunk * kChunk, std::min(kChunk, stored_ - chunk * kChunk));
    });
  }

 private:
  /// Gives every broadcast input and every instruction a buffer. An instruction writes straight to the output that
  /// wants its result, unless a later one still reads an input, which may be the same memory.
  void place_slots() {
    const size_t inputs = operands_.size(), steps = program_.instructions.size();
    std::vector<size_t> last_use(inputs + steps, 0);
    size_t last_read = 0;  // of any input that lies in memory as the outputs do
    for (size_t step = 0; step < steps; ++step)
      for (const int slot :
           {program_.instructions[step].a, program_.instructions[step].b, program_.instructions[step].c}) {
        if (slot < 0) continue;
        const auto used = static_cast<size_t>(slot);
        last_use[used] = step;
        if (used < inputs && operands_[used].kind == BroadcastOperand::Kind::direct) last_read = step;
      }
    for (const int64_t slot : program_.results) last_use[static_cast<size_t>(slot)] = steps;
    for (size_t i = 0; i < inputs; ++i) {
      slots_[i] = {Slot::Place::input, i};
      input_buffers_[i] = operands_[i].kind == BroadcastOperand::Kind::direct ? 0 : static_cast<size_t>(buffers_++);
    }
    std::vector<size_t> free;
    for (size_t step = 0; step < steps; ++step) {
      const size_t slot = inputs + step;
      size_t result = 0;
      while (result < program_.results.size() && program_.results[result] != static_cast<int64_t>(slot)) ++result;
      if (result < program_.results.size() && step >= last_read) {
        slots_[slot] = {Slot::Place::result, result};
      } else {
        if (free.empty()) free.push_back(static_cast<size_t>(buffers_++));
        slots_[slot] = {Slot::Place::scratch, free.back()};
        free.pop_back();
      }
      for (size_t earlier = inputs; earlier < slot; ++earlier)
        if (slots_[earlier].place == Slot::Place::scratch && last_use[earlier] == step)
          free.push_back(slots_[earlier].index);
    }
  }

  void run_chunk(const KernelArguments& arguments, float* scratch, int64_t begin, int64_t count) const {
    const size_t inputs = operands_.size();
    std::array<float*, kMaximumSlots> at;
    const auto buffer = [&](size_t index) { return scratch + static_cast<int64_t>(index) * kChunk; };
    const auto output = [&](size_t index) { return static_cast<float*>(arguments.outputs[index]) + begin; };
    for (size_t i = 0; i < inputs; ++i) {
      const auto* from = static_cast<const float*>(arguments.inputs[i]);
      if (operands_[i].kind == BroadcastOperand::Kind::direct) {
        at[i] = const_cast<float*>(from) + begin;  // only read
        continue;
      }
      at[i] = buffer(input_buffers_[i]);
      if (operands_[i].kind != BroadcastOperand::Kind::scalar) operands_[i].gather(from, begin, count, at[i]);
    }
    for (size_t step = 0; step < program_.instructions.size(); ++step) {
      const auto& instruction = program_.instructions[step];
      const Slot& slot = slots_[inputs + step];
      float* out = slot.place == Slot::Place::result ? output(slot.index) : buffer(slot.index);
      at[inputs + step] = out;
      const float* a = at[static_cast<size_t>(instruction.a)];
      const float* b = instruction.b < 0 ? a : at[static_cast<size_t>(instruction.b)];
      const float* c = instruction.c < 0 ? a : at[static_cast<size_t>(instruction.c)];
      program_.loops[step](out, {a, b, c, instruction.literal, instruction.second_literal}, count);
    }
    for (size_t k = 0; k < program_.results.size(); ++k) {
      const auto slot = static_cast<size_t>(program_.results[k]);
      if (at[slot] != output(k)) std::copy(at[slot], at[slot] + count, output(k));
      if (padded_) clear_padding(output(k), begin, count);
    }
  }

  /// Zeros the channels that only fill up the last block.
  void clear_padding(float* out, int64_t begin, int64_t count) const {
    const int64_t block = padded_->width, real = padded_->channels % block;
    for (int64_t i = 0; i < count; i += block)
      if ((begin + i) / padded_->group_stride % padded_->groups == padded_->groups - 1)
        std::fill(out + i + real, out + i + block, 0.0f);
  }

  const Program program_;
  const std::vector<BroadcastOperand> operands_;
  const Loops& loops_;
  const int threads_;
  const int64_t stored_;  // elements, padding included
  const std::string name_;
  std::optional<ChannelView> padded_;  // only where the layout pads channels
  std::array<Slot, kMaximumSlots> slots_;
  std::array<size_t, kMaximumSlots> input_buffers_{};
  int64_t buffers_ = 0;  // chunk buffers per thread
};

std::unique_ptr<Kernel> make_elementwise(const NodeSignature& node, Program program, int threads, const Loops& loops,
                                         std::string& why_not) {
  const TensorType& output = node.outputs[0];
  if (node.inputs.size() + program.instructions.size() > kMaximumSlots)
    return declined(why_not, fmt::format("more than {} slots", kMaximumSlots));
  for (const auto& type : node.outputs)
    if (type.dtype != DType::f32 || type.layout != output.layout || type.shape != output.shape)
      return declined(why_not, fmt::format("result {} is not f32 or unlike {}", to_string(type), to_string(output)));
  std::vector<BroadcastOperand> operands;
  for (const auto& type : node.inputs) {
    auto operand = broadcast_operand(type, output, why_not);
    if (!operand) return nullptr;
    operands.push_back(std::move(*operand));
  }
  const bool padded = storage_elements(output.shape, output.layout) != output.elements();
  const auto view = channel_view(output);
  if (padded && (!view || kChunk % view->width != 0))
    return declined(why_not, fmt::format("padding of layout {}", to_string(output.layout)));
  return std::make_unique<Elementwise>(node, std::move(program), std::move(operands), threads, loops);
}

std::unique_ptr<Kernel> make_single(const NodeSignature& node, const KernelOptions& options, const Loops& loops,
                                    std::string& why_not) {
  ops::ScalarInstruction instruction;
  if (!ops::scalar_instruction(node.op->name, node.attributes, instruction))
    return declined(why_not, "it is no scalar instruction");
  const int operands = ops::operand_count(instruction.op);
  instruction.a = 0;
  instruction.b = operands > 1 ? 1 : -1;
  instruction.c = operands > 2 ? 2 : -1;
  Program program{{instruction}, {static_cast<int64_t>(node.inputs.size())}, {loops.of(instruction.op)}};
  const InstructionLoop for_integers = instruction.op == ops::ScalarOp::equal           ? loops.equal_integers
                                       : instruction.op == ops::ScalarOp::greater       ? loops.greater_integers
                                       : instruction.op == ops::ScalarOp::greater_equal ? loops.greater_equal_integers
                                                                                        : nullptr;
  const DType dtype = node.inputs[0].dtype;
  for (const auto& type : node.inputs)
    if (type.dtype != dtype || !(dtype == DType::f32 || (for_integers != nullptr && dtype == DType::i32)))
      return declined(why_not, fmt::format("operand {} is not f32", to_string(type)));
  if (dtype == DType::i32) program.loops[0] = for_integers;
  return make_elementwise(node, std::move(program), options.threads, loops, why_not);
}

std::unique_ptr<Kernel> make_fused(const NodeSignature& node, const KernelOptions& options, const Loops& loops,
                                   std::string& why_not) {
  Program program;
  program.instructions = ops::parse_program(node.attributes.text("program"), static_cast<int>(node.inputs.size()));
  program.results = node.attributes.integers("results");
  for (const auto& instruction : program.instructions) program.loops.push_back(loops.of(instruction.op));
  for (const auto& type : node.inputs)
    if (type.dtype != DType::f32) return declined(why_not, fmt::format("operand {} is not f32", to_string(type)));
  return make_elementwise(node, std::move(program), options.threads, loops, why_not);
}

}  // namespace

void add_elementwise(KernelTable& table, Isa isa) {
  const auto factory = [isa](auto make) {
    return [isa, make](const NodeSignature& node, const KernelOptions& options, std::string& why_not) {
      return make(node, options, loops_for(isa), why_not);
    };
  };
  for (const std::string& op : ops::scalar_op_names()) table.add(op, {"native", factory(make_single)});
  table.add("fused_elementwise", {"native", factory(make_fused)});
}

}  // namespace weft::native
