// Elementwise ops and fused programs of them: an interpreter whose instructions are vector loops over chunks that stay
// in the first-level cache, so that a whole program costs one pass over memory. What lies between instructions is f32:
// operands in bf16 are widened as they are read, results are rounded as they are written.
#include <fmt/format.h>

#include <array>

#include "weft/base/parallel.h"
#include "weft/cpu/native/support/broadcast_operand.h"
#include "weft/cpu/native/support/channel_view.h"
#include "weft/cpu/native/support/families.h"
#include "weft/ops/fused.h"

namespace weft::native {

namespace {

/// What an instruction reads; those that it does not have repeat `a`.
struct Operands {
  const void *a, *b, *c;
  float literal, second_literal;
  void* second_out = nullptr;  // where a loop for two instructions puts the second one's result
};
using InstructionLoop = void (*)(void* out, const Operands& operands, int64_t count);

/// Which ends of an instruction are bf16; the others are f32.
struct Ends {
  bool a = false, b = false, out = false;
};

struct Loops {
  InstructionLoop (*of)(ops::ScalarOp);
  InstructionLoop (*narrow_of)(ops::ScalarOp, Ends);  // null for most
  InstructionLoop (*gelu_and_slope_of)(ops::ScalarOp slope, Ends);
  InstructionLoop equal_integers, greater_integers, greater_equal_integers;
  void (*fill)(float* out, float value, int64_t count);
  void (*widen)(const Bf16* from, float* to, int64_t count);
  void (*convert)(const float* integers, float* to, int64_t count);  // words of i32
  void (*narrow)(const float* from, Bf16* to, int64_t count);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/elementwise/elementwise_loops.h"
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

constexpr int64_t kChunk = 1024;         // elements: 4 KB per slot
constexpr size_t kMaximumSlots = 64;     // inputs and instructions of one program
constexpr int64_t kChunksPerThread = 8;  // less is not worth waking a thread

struct Program {
  std::vector<ops::ScalarInstruction> instructions;
  std::vector<int64_t> results;
  std::vector<InstructionLoop> loops;  // per instruction, for f32; null: the loop before computes it too
};

/// Whether the instruction and the next one are the slope of a gelu and that gelu, which one loop computes together.
bool is_slope_before_gelu(const std::vector<ops::ScalarInstruction>& instructions, size_t step) {
  if (step + 1 >= instructions.size() || instructions[step].a != instructions[step + 1].a) return false;
  const ops::ScalarOp first = instructions[step].op, second = instructions[step + 1].op;
  return (first == ops::ScalarOp::gelu_slope && second == ops::ScalarOp::gelu) ||
         (first == ops::ScalarOp::gelu_tanh_slope && second == ops::ScalarOp::gelu_tanh);
}

/// How an input lies in memory. Of 4 bytes: f32, i32 that is read as f32, or i32 for the comparisons that take it.
struct Source {
  BroadcastOperand walk;
  bool is_bf16, is_converted;
  bool is_direct() const { return walk.kind == BroadcastOperand::Kind::direct; }
  bool is_scalar() const { return walk.kind == BroadcastOperand::Kind::scalar; }
};

/// Where the values of a slot lie while a chunk is worked on: an input's in its own memory or in f32 in a buffer, an
/// instruction's in a buffer or in a result.
struct Slot {
  enum class Place { memory, buffer };
  Place place = Place::memory;
  size_t index = 0;  // of the input or result, or of the buffer
};

class Elementwise : public Kernel {
 public:
  Elementwise(const NodeSignature& node, Program program, std::vector<Source> sources, int threads, const Loops& loops)
      : program_(std::move(program)),
        sources_(std::move(sources)),
        loops_(loops),
        narrows_(node.outputs[0].dtype == DType::bf16),
        threads_(threads),
        stored_(storage_elements(node.outputs[0].shape, node.outputs[0].layout)),
        name_("native:" + node.op->name) {
    for (size_t step = 0; step < program_.instructions.size(); ++step)
      leads_pair_.push_back(is_slope_before_gelu(program_.instructions, step));
    if (stored_ != node.outputs[0].elements()) padded_ = channel_view(node.outputs[0]);
    choose_loops();
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
      for (size_t i = 0; i < sources_.size(); ++i) {  // once for all chunks
        if (!sources_[i].is_scalar()) continue;
        float value;
        if (sources_[i].is_bf16)
          loops_.widen(arguments.input<Bf16>(i), &value, 1);
        else if (sources_[i].is_converted)
          loops_.convert(arguments.input(i), &value, 1);
        else
          value = *arguments.input(i);
        loops_.fill(scratch + static_cast<int64_t>(slots_[i].index) * kChunk, value, kChunk);
      }
      for (int64_t chunk = begin; chunk < end; ++chunk)
        run_chunk(arguments, scratch, chunk * kChunk, std::min(kChunk, stored_ - chunk * kChunk));
    });
  }

 private:
  std::array<int, 3> operands_of(size_t step) const {
    const auto& instruction = program_.instructions[step];
    return {instruction.a, instruction.b, instruction.c};
  }

  /// Instructions that can read bf16 do so straight from memory. What others read, and integers, get a buffer.
  void choose_loops() {
    const size_t inputs = sources_.size();
    for (size_t i = 0; i < inputs; ++i)
      slots_[i].place =
          sources_[i].is_direct() && !sources_[i].is_converted ? Slot::Place::memory : Slot::Place::buffer;
    for (size_t step = 0; step < program_.instructions.size(); ++step)
      if (loops_.narrow_of(program_.instructions[step].op, {}) == nullptr)
        for (const int slot : operands_of(step))
          if (is_narrow(slot)) slots_[static_cast<size_t>(slot)].place = Slot::Place::buffer;
    for (size_t i = 0; i < inputs; ++i)
      slots_[i].index = slots_[i].place == Slot::Place::memory ? i : static_cast<size_t>(buffers_++);
    ends_.resize(program_.instructions.size());
    for (size_t step = 0; step < ends_.size(); ++step)
      ends_[step] = {is_narrow(program_.instructions[step].a), is_narrow(program_.instructions[step].b), false};
  }

  bool ends_pair(size_t step) const { return step > 0 && leads_pair_[step - 1]; }

  /// True for an input that is read as bf16.
  bool is_narrow(int slot) const {
    const auto index = static_cast<size_t>(slot);
    return slot >= 0 && index < sources_.size() && sources_[index].is_bf16 &&
           slots_[index].place == Slot::Place::memory;
  }

  /// Gives every instruction a buffer, or lets it write straight to the output that wants its result, unless a later
  /// one still reads an input, which may be the same memory, or, where that output is bf16, the result itself.
  void place_slots() {
    const size_t inputs = sources_.size(), steps = program_.instructions.size();
    std::vector<size_t> last_use(inputs + steps, 0);
    size_t last_read = 0;  // of any input where it lies in memory
    for (size_t step = 0; step < steps; ++step)
      for (const int slot : operands_of(step)) {
        if (slot < 0) continue;
        const auto used = static_cast<size_t>(slot);
        last_use[used] = step;
        // The second of a pair is computed by the loop of the first.
        if (used < inputs && slots_[used].place == Slot::Place::memory && !ends_pair(step)) last_read = step;
      }
    const auto writes_bf16 = [&](size_t step) {
      const size_t slot = inputs + step;
      return results_of(slot) == 1 && last_use[slot] == 0 && narrow_loop(step, {ends_[step].a, ends_[step].b, true});
    };
    std::vector<size_t> free;
    for (size_t step = 0; step < steps; ++step) {
      const size_t slot = inputs + step;
      const auto wanted = results_of(slot);
      // Both of a pair are written as bf16 or none.
      const bool fits =
          !narrows_ ||
          (ends_pair(step) ? ends_[step - 1].out : writes_bf16(step) && (!leads_pair_[step] || writes_bf16(step + 1)));
      if (wanted > 0 && step >= last_read && fits) {
        ends_[step].out = narrows_;
        const auto result = std::find(program_.results.begin(), program_.results.end(), static_cast<int64_t>(slot));
        slots_[slot] = {Slot::Place::memory, static_cast<size_t>(result - program_.results.begin())};
      } else {
        if (free.empty()) free.push_back(static_cast<size_t>(buffers_++));
        slots_[slot] = {Slot::Place::buffer, free.back()};
        free.pop_back();
      }
      if (wanted > 0) last_use[slot] = steps;
      for (size_t earlier = inputs; earlier < slot; ++earlier)
        if (slots_[earlier].place == Slot::Place::buffer && last_use[earlier] == step)
          free.push_back(slots_[earlier].index);
    }
    for (size_t step = 0; step < steps; ++step)
      if (leads_pair_[step])
        program_.loops[step] = loops_.gelu_and_slope_of(program_.instructions[step].op, ends_[step]);
      else if (ends_pair(step))
        program_.loops[step] = nullptr;
      else if (ends_[step].a || ends_[step].b || ends_[step].out)
        program_.loops[step] = narrow_loop(step, ends_[step]);
  }

  /// How many of the results are the slot's value.
  int64_t results_of(size_t slot) const {
    return std::count(program_.results.begin(), program_.results.end(), static_cast<int64_t>(slot));
  }

  InstructionLoop narrow_loop(size_t step, Ends ends) const {
    return loops_.narrow_of(program_.instructions[step].op, ends);
  }

  /// Brings the values of an input for one chunk into its buffer.
  void read(const KernelArguments& arguments, size_t i, float* buffer, int64_t begin, int64_t count) const {
    const Source& source = sources_[i];
    if (source.is_scalar()) return;  // filled already
    if (source.is_converted && source.is_direct()) {
      loops_.convert(arguments.input(i) + begin, buffer, count);
    } else if (source.is_converted) {
      float gathered[kChunk];
      source.walk.gather(arguments.input(i), begin, count, gathered);
      loops_.convert(gathered, buffer, count);
    } else if (!source.is_bf16) {
      source.walk.gather(arguments.input(i), begin, count, buffer);
    } else if (source.is_direct()) {
      loops_.widen(arguments.input<Bf16>(i) + begin, buffer, count);
    } else {
      Bf16 gathered[kChunk];
      source.walk.gather(arguments.input<Bf16>(i), begin, count, gathered);
      loops_.widen(gathered, buffer, count);
    }
  }

  void run_chunk(const KernelArguments& arguments, float* scratch, int64_t begin, int64_t count) const {
    const size_t inputs = sources_.size();
    std::array<const void*, kMaximumSlots> at;
    const auto buffer = [&](size_t slot) { return scratch + static_cast<int64_t>(slots_[slot].index) * kChunk; };
    const auto result = [&](size_t k) {
      return static_cast<std::byte*>(arguments.outputs[k]) + begin * (narrows_ ? 2 : 4);
    };
    const auto out_of = [&](size_t slot) {
      return slots_[slot].place == Slot::Place::memory ? static_cast<void*>(result(slots_[slot].index)) : buffer(slot);
    };
    for (size_t i = 0; i < inputs; ++i) {
      const bool in_memory = slots_[i].place == Slot::Place::memory;
      if (!in_memory) read(arguments, i, buffer(i), begin, count);
      at[i] = in_memory ? static_cast<const std::byte*>(arguments.inputs[i]) + begin * (sources_[i].is_bf16 ? 2 : 4)
                        : static_cast<const void*>(buffer(i));
    }
    for (size_t step = 0; step < program_.instructions.size(); ++step) {
      const auto& instruction = program_.instructions[step];
      const size_t slot = inputs + step;
      at[slot] = out_of(slot);
      if (program_.loops[step] == nullptr) continue;  // computed with the one before
      const void* a = at[static_cast<size_t>(instruction.a)];
      const void* b = instruction.b < 0 ? a : at[static_cast<size_t>(instruction.b)];
      const void* c = instruction.c < 0 ? a : at[static_cast<size_t>(instruction.c)];
      program_.loops[step](
          out_of(slot),
          {a, b, c, instruction.literal, instruction.second_literal, leads_pair_[step] ? out_of(slot + 1) : nullptr},
          count);
    }
    for (size_t k = 0; k < program_.results.size(); ++k) {
      const auto* values = static_cast<const float*>(at[static_cast<size_t>(program_.results[k])]);
      if (narrows_)
        finish(values, reinterpret_cast<Bf16*>(result(k)), begin, count);
      else
        finish(values, reinterpret_cast<float*>(result(k)), begin, count);
    }
  }

  /// Writes a result that does not lie there yet.
  template <typename T>
  void finish(const float* values, T* out, int64_t begin, int64_t count) const {
    if (static_cast<const void*>(values) != out) {
      if constexpr (std::is_same_v<T, Bf16>)
        loops_.narrow(values, out, count);
      else
        std::copy(values, values + count, out);
    }
    if (padded_) clear_padding(out, begin, count);
  }

  /// Zeros the channels that only fill up the last block.
  template <typename T>
  void clear_padding(T* out, int64_t begin, int64_t count) const {
    const int64_t block = padded_->width, real = padded_->channels % block;
    for (int64_t i = 0; i < count; i += block)
      if ((begin + i) / padded_->group_stride % padded_->groups == padded_->groups - 1)
        std::fill(out + i + real, out + i + block, T{});
  }

  Program program_;
  const std::vector<Source> sources_;
  const Loops& loops_;
  const bool narrows_;            // results are bf16
  std::vector<Ends> ends_;        // per instruction
  std::vector<bool> leads_pair_;  // per instruction: it is the slope before its gelu
  const int threads_;
  const int64_t stored_;  // elements, padding included
  const std::string name_;
  std::optional<ChannelView> padded_;  // only where the layout pads channels
  std::array<Slot, kMaximumSlots> slots_;
  int64_t buffers_ = 0;  // chunk buffers per thread
};

/// `converts`: reads operands of i32 as f32.
std::unique_ptr<Kernel> make_elementwise(const NodeSignature& node, Program program, int threads, const Loops& loops,
                                         bool converts, std::string& why_not) {
  const TensorType& output = node.outputs[0];
  if (node.inputs.size() + program.instructions.size() > kMaximumSlots)
    return declined(why_not, fmt::format("more than {} slots", kMaximumSlots));
  for (const auto& type : node.outputs)
    if (type != output || !is_stored_type(type.dtype))
      return declined(why_not,
                      fmt::format("result {} is not f32 or bf16, or unlike {}", to_string(type), to_string(output)));
  std::vector<Source> sources;
  for (const auto& type : node.inputs) {
    auto operand = broadcast_operand(type, output, why_not);
    if (!operand) return nullptr;
    sources.push_back({std::move(*operand), type.dtype == DType::bf16, converts && type.dtype == DType::i32});
  }
  const bool padded = storage_elements(output.shape, output.layout) != output.elements();
  const auto view = channel_view(output);
  if (padded && (!view || kChunk % view->width != 0))
    return declined(why_not, fmt::format("padding of layout {}", to_string(output.layout)));
  return std::make_unique<Elementwise>(node, std::move(program), std::move(sources), threads, loops);
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
  if (program.loops[0] == nullptr) return declined(why_not, "these kernels are without gradients");
  const InstructionLoop for_integers = instruction.op == ops::ScalarOp::equal           ? loops.equal_integers
                                       : instruction.op == ops::ScalarOp::greater       ? loops.greater_integers
                                       : instruction.op == ops::ScalarOp::greater_equal ? loops.greater_equal_integers
                                                                                        : nullptr;
  const DType dtype = node.inputs[0].dtype;
  for (const auto& type : node.inputs)
    if (type.dtype != dtype || !(is_stored_type(dtype) || (for_integers != nullptr && dtype == DType::i32)))
      return declined(why_not, fmt::format("operand {} is not f32 or bf16 as all others", to_string(type)));
  if (dtype == DType::i32) program.loops[0] = for_integers;
  return make_elementwise(node, std::move(program), options.threads, loops, /*converts=*/false, why_not);
}

std::unique_ptr<Kernel> make_fused(const NodeSignature& node, const KernelOptions& options, const Loops& loops,
                                   std::string& why_not) {
  Program program;
  program.instructions = ops::parse_program(node.attributes.text("program"), static_cast<int>(node.inputs.size()));
  program.results = node.attributes.integers("results");
  for (const auto& instruction : program.instructions) {
    program.loops.push_back(loops.of(instruction.op));
    if (program.loops.back() == nullptr) return declined(why_not, "these kernels are without gradients");
  }
  for (const auto& type : node.inputs)
    if (!is_stored_type(type.dtype) && type.dtype != DType::i32)
      return declined(why_not, fmt::format("operand {} is not f32, bf16 or i32", to_string(type)));
  return make_elementwise(node, std::move(program), options.threads, loops, /*converts=*/true, why_not);
}

void add_kernels_of(KernelTable& table, const Loops& loops) {
  const auto factory = [&loops](auto make) {
    return [&loops, make](const NodeSignature& node, const KernelOptions& options, std::string& why_not) {
      return make(node, options, loops, why_not);
    };
  };
  for (const std::string& op : ops::scalar_op_names()) table.add(op, {"native", factory(make_single)});
  table.add("fused_elementwise", {"native", factory(make_fused)});
}

/// A table of its own, so that programs without gradients leave theirs out.
const Loops& forward_loops_for(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512::forward_loops;
  if (isa == Isa::avx2) return avx2::forward_loops;
#endif
  static_cast<void>(isa);
  return baseline::forward_loops;
}

}  // namespace

void add_elementwise(KernelTable& table, Isa isa) { add_kernels_of(table, loops_for(isa)); }

void add_forward_elementwise(KernelTable& table, Isa isa) { add_kernels_of(table, forward_loops_for(isa)); }

}  // namespace weft::native
