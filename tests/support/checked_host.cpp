#include "tests/support/checked_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "weft/base/error.h"
#include "weft/graph/space_copies.h"

namespace weft {

namespace {

constexpr std::byte kFill{0xfd};  // no number in f16, a huge one in f32

bool is_copy(const NodeSignature& node) { return node.op->name == kCopyToDevice || node.op->name == kCopyToHost; }

class SpaceCopy : public Kernel {
 public:
  SpaceCopy(const NodeSignature& node, std::shared_ptr<CheckedMemory> memory)
      : to_device_(node.op->name == kCopyToDevice), node_(node), memory_(std::move(memory)) {}
  std::string name() const override { return "copy"; }
  void run(const KernelArguments& arguments) override {
    const int64_t bytes = node_.outputs[0].bytes();
    void* const to = arguments.outputs[0];
    const void* const from = arguments.inputs[0];
    check(memory_->holds(to_device_ ? to : from, bytes) && !memory_->holds(to_device_ ? from : to, bytes),
          "a copy between spaces within one of them");
    if (!to_device_) return memory_->copy_out(to, static_cast<const std::byte*>(from), bytes);
    memory_->copy_in(static_cast<std::byte*>(to), from, bytes);
    memory_->name_value(to, bytes, node_.name);
  }

 private:
  const bool to_device_;
  const NodeSignature node_;
  const std::shared_ptr<CheckedMemory> memory_;
};

/// The parts of `range` that lie in none of `taken`, which are sorted by their begin.
template <typename Visit>
void for_gaps(const AddressRange& range, const std::vector<AddressRange>& taken, Visit&& visit) {
  const std::byte* at = range.begin;
  for (const AddressRange& one : taken) {
    if (one.end <= at || one.begin >= range.end) continue;
    if (one.begin > at) visit(AddressRange{at, one.begin});
    at = std::max(at, one.end);
  }
  if (at < range.end) visit(AddressRange{at, range.end});
}

class CheckedKernel : public Kernel {
 public:
  CheckedKernel(std::unique_ptr<Kernel> kernel, const NodeSignature& node, std::shared_ptr<CheckedMemory> memory)
      : kernel_(std::move(kernel)),
        node_(node),
        who_(fmt::format("[{}] '{}'", node.op->name, node.name)),
        memory_(std::move(memory)) {}
  std::string name() const override { return kernel_->name(); }
  int64_t workspace_bytes() const override { return kernel_->workspace_bytes(); }

  void run(const KernelArguments& arguments) override {
    operands_.clear();
    for (size_t i = 0; i < node_.inputs.size(); ++i)
      add(arguments.inputs[i], node_.inputs[i].bytes(), fmt::format("input {}", i), false);
    for (size_t i = 0; i < node_.outputs.size(); ++i)
      add(arguments.outputs[i], node_.outputs[i].bytes(), fmt::format("output {}", i), true);
    add(arguments.workspace, kernel_->workspace_bytes(), "its workspace", true);
    for (const bool writable : {false, true})  // what is both is opened last for writing
      for (const Operand& operand : operands_)
        if (operand.is_written == writable) memory_->open(operand.pages, writable);
    const std::vector<AddressRange> inputs = ranges([](const Operand& operand) { return !operand.is_written; });
    for (const Operand& operand : operands_)
      if (operand.is_written)
        for_gaps(operand.pages, inputs, [](const AddressRange& gap) {
          std::memset(const_cast<std::byte*>(gap.begin), static_cast<int>(kFill),
                      static_cast<size_t>(gap.end - gap.begin));
        });

    memory_->set_running(who_);
    kernel_->run(arguments);
    memory_->set_running("");

    const std::vector<AddressRange> all = ranges([](const Operand&) { return true; });
    std::string changed;
    for (const Operand& operand : operands_)
      if (operand.is_written)
        for_gaps(operand.pages, all, [&](const AddressRange& gap) {
          const auto is_other = [](std::byte value) { return value != kFill; };
          const auto* const found = std::find_if(gap.begin, gap.end, is_other);
          if (found != gap.end && changed.empty()) changed = describe(found);
        });
    for (const Operand& operand : operands_) memory_->close(operand.pages);
    if (!changed.empty()) fail(ErrorKind::internal, "checked host: {} wrote {}", who_, changed);
    for (size_t i = 0; i < node_.outputs.size(); ++i)
      memory_->name_value(arguments.outputs[i], node_.outputs[i].bytes(),
                          i == 0 ? node_.name : fmt::format("{}.{}", node_.name, i));
  }

 private:
  struct Operand {
    AddressRange bytes, pages;
    std::string name;
    bool is_written = false;
  };

  void add(const void* address, int64_t bytes, std::string name, bool is_written) {
    if (bytes == 0) return;
    if (!memory_->holds(address, bytes))
      fail(ErrorKind::internal, "checked host: {} of {} lies in the host's memory: a copy was left out", name, who_);
    const auto* const begin = static_cast<const std::byte*>(address);
    operands_.push_back({{begin, begin + bytes}, pages_of(address, bytes), std::move(name), is_written});
  }

  template <typename Choose>
  std::vector<AddressRange> ranges(Choose&& choose) const {
    std::vector<AddressRange> chosen;
    for (const Operand& operand : operands_)
      if (choose(operand)) chosen.push_back(operand.bytes);
    std::sort(chosen.begin(), chosen.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    return chosen;
  }

  /// "12 bytes before output 0", of the operand on the same pages.
  std::string describe(const std::byte* at) const {
    for (const Operand& operand : operands_) {
      if (!operand.is_written || at < operand.pages.begin || at >= operand.pages.end) continue;
      if (at < operand.bytes.begin) return fmt::format("{} bytes before {}", operand.bytes.begin - at, operand.name);
      return fmt::format("{} bytes behind {}", at - operand.bytes.end + 1, operand.name);
    }
    return "somewhere";
  }

  const std::unique_ptr<Kernel> kernel_;
  const NodeSignature node_;
  const std::string who_;
  const std::shared_ptr<CheckedMemory> memory_;
  std::vector<Operand> operands_;
};

class CheckedContext : public ExecutionContext {
 public:
  explicit CheckedContext(std::shared_ptr<CheckedMemory> memory) : memory_(std::move(memory)) {}
  void copy(void* to, const void* from, int64_t bytes) override {
    memory_->open(pages_of(from, bytes), false);
    memory_->copy_in(static_cast<std::byte*>(to), from, bytes);
    memory_->close(pages_of(from, bytes));
  }

 private:
  const std::shared_ptr<CheckedMemory> memory_;
};

}  // namespace

KernelChoice CheckedHost::choose_kernel(const NodeSignature& node) const {
  return is_copy(node) ? KernelChoice{"copy", 0, {}} : cpu_.choose_kernel(node);
}

std::unique_ptr<Kernel> CheckedHost::make_kernel(const NodeSignature& node) const {
  if (is_copy(node)) return std::make_unique<SpaceCopy>(node, checked_);
  if (works_on_host(*node.op)) return cpu_.make_kernel(node);
  return std::make_unique<CheckedKernel>(cpu_.make_kernel(node), node, checked_);
}

std::unique_ptr<Kernel> CheckedHost::make_kernel(const NodeSignature& node, const std::string& name) const {
  if (is_copy(node)) return make_kernel(node);
  if (works_on_host(*node.op)) return cpu_.make_kernel(node, name);
  auto kernel = cpu_.make_kernel(node, name);
  if (kernel == nullptr) return nullptr;
  return std::make_unique<CheckedKernel>(std::move(kernel), node, checked_);
}

std::unique_ptr<ExecutionContext> CheckedHost::make_context() const {
  return std::make_unique<CheckedContext>(checked_);
}

}  // namespace weft
