// A kernel runs one node. Candidates for each op stand in an ordered list that ends in the reference kernel;
// a candidate makes a kernel for a signature or says why it cannot.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/device/backend.h"

namespace weft {

class ExecutionContext;

/// Pointers for one call, in the order of the signature. Types were fixed when the kernel was made.
struct KernelArguments {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  void* workspace = nullptr;  // workspace_bytes() bytes, kAlignment aligned, content arbitrary
  /// Of the executor that calls (device/execution.h); null where nobody else's calls are to be kept in order with.
  ExecutionContext* context = nullptr;

  template <typename T = float>
  const T* input(size_t index) const {
    return static_cast<const T*>(inputs[index]);
  }
  template <typename T = float>
  T* output(size_t index) const {
    return static_cast<T*>(outputs[index]);
  }
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Full name for `weft explain`, e.g. "onednn:jit:avx512_core".
  virtual std::string name() const = 0;
  virtual int64_t workspace_bytes() const { return 0; }
  /// Must not allocate and must not throw, but for an Error on the calling thread where a library or a disk below
  /// fails. Deterministic for a given signature and thread count.
  virtual void run(const KernelArguments& arguments) = 0;
};

struct KernelOptions {
  int threads = 1;
};

/// Returns null and sets `why_not` ("layout abdc of operand 0") where it cannot serve the signature.
using KernelFactory =
    std::function<std::unique_ptr<Kernel>(const NodeSignature&, const KernelOptions&, std::string& why_not)>;

/// The layouts in which a candidate would have the operands of a node; nullopt where it has no wish. What the signature
/// has is what is known of them so far.
using KernelLayouts = std::function<std::optional<LayoutChoice>(const NodeSignature&, const KernelOptions&)>;

struct KernelCandidate {
  std::string family;  // "onednn", "native", "reference"
  KernelFactory make;
  KernelLayouts layouts = {};  // null: it takes what comes, or declines
};

/// Per op the candidates, best first. Families register in the order native, onednn, reference; a family puts itself
/// first with add_first for an op where it was measured to be the faster one (docs/performance.md).
class KernelTable {
 public:
  void add(const std::string& op, KernelCandidate candidate) { candidates_[op].push_back(std::move(candidate)); }
  void add_first(const std::string& op, KernelCandidate candidate) {
    auto& list = candidates_[op];
    list.insert(list.begin(), std::move(candidate));
  }
  /// Of an op that has some; to say more of them.
  std::vector<KernelCandidate>& candidates_to_change(const std::string& op) { return candidates_[op]; }
  const std::vector<KernelCandidate>& candidates(const std::string& op) const {
    static const std::vector<KernelCandidate> none;
    const auto found = candidates_.find(op);
    return found == candidates_.end() ? none : found->second;
  }

 private:
  std::map<std::string, std::vector<KernelCandidate>> candidates_;
};

/// All kernels that weft has.
KernelTable standard_kernels();
/// The reference kernels alone, for checks against them.
KernelTable reference_kernels();

/// Plain loops, plain layouts, accumulation in double: what the other kernels are checked against.
void add_reference_kernels(KernelTable&);
/// weft's own vectorised, threaded kernels.
void add_native_kernels(KernelTable&);
/// oneDNN's primitives.
void add_onednn_kernels(KernelTable&);
/// Of these what inference has use for.
void add_forward_onednn_kernels(KernelTable&);

}  // namespace weft
