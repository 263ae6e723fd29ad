// Products of rows of bytes by packed columns, with what becomes of the sums: the frame in which matrix products and
// convolutions of integers run, once for each stack of matrices or group of channels.
//
// The tile multiplies a' = a (u8) or a + 128 (i8) by b' = b (i8) or b - 128 (u8). With zero points moved likewise,
//   sum (a - a0) (b - b0) = sum a' b' - a0' sum b' - b0' sum a' + inner a0' b0'
// where only b0' is often 0 and a0' b' can be summed before: "added" holds all that does not depend on the row.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "weft/cpu/native/integer/row_ends.h"
#include "weft/cpu/native/integer/tile.h"
#include "weft/device/kernel.h"
#include "weft/ops/integer/quantized.h"

namespace weft::native {

constexpr int64_t kPackingSlack = 64;

/// Of one stack or group.
struct ProductSize {
  int64_t rows, columns;
  int64_t inner;   // numbers that are multiplied
  int64_t padded;  // the same with what fills up groups of 4; a's are 0 there
  int64_t groups() const { return padded / kInnerGroup; }
  int64_t blocks() const { return (columns + kColumnBlock - 1) / kColumnBlock; }
  int64_t packed_bytes() const { return blocks() * groups() * kGroupBytes; }
};

/// How a kernel's operands are read and its result is written, fixed when the kernel is made.
struct ProductPlan {
  ProductSize size;
  DType a = DType::u8, b = DType::i8, result = DType::i32;
  int64_t channels = 0;  // of the result, all groups together
  bool has_a_zero = false, has_b_zero = false, b_zero_per_channel = false;
  bool factor_per_channel = false;
  bool has_integer_bias = false, has_real_bias = false;  // before the factor, of bytes; behind it, of f32
  ops::Requantization rule = {};
  int threads = 1;
  Isa isa = Isa::baseline;

  bool writes_bytes() const { return ops::is_byte(result); }
  /// Of a node whose operands stand as those of integer_matmul, quantized_matmul and dequantized_matmul do.
  void read_operands(const NodeSignature& node, int64_t channel_count);
};

/// One stack or group of a call.
struct ProductPart {
  /// Packed columns; null: pack_columns(first block, last block, to) brings them into the workspace.
  const uint8_t* packed = nullptr;
  std::function<void(int64_t first, int64_t last, uint8_t* to)> pack_columns = {};
  /// Rows as they are, `direct_row` bytes from one to the next; null: pack_rows(first, last, to) brings them into
  /// rows of size.padded bytes, zeros behind each. It may write kPackingSlack bytes more behind the last.
  const uint8_t* direct = nullptr;
  int64_t direct_row = 0;
  std::function<void(int64_t first, int64_t last, uint8_t* to)> pack_rows = {};
  /// Where rows begin that nobody needs to pack, each in pieces of so many groups (tile.h); asked for only where
  /// IntegerProduct::reads_pieces() and there are no zero points of b.
  std::function<void(int64_t first, int64_t count, const uint8_t** starts)> find_rows = {};
  std::span<const int64_t> pieces = {};
  int64_t first_channel = 0;
  int64_t first_element = 0, row_elements = 0;  // of the result: the part's first, and from one row to the next
};

class IntegerProduct {
 public:
  explicit IntegerProduct(ProductPlan plan);

  const ProductPlan& plan() const { return plan_; }
  const RowLoops& loops() const { return loops_; }
  int64_t workspace_bytes() const;
  bool reads_pieces() const { return uses_vnni_; }
  /// "vnni", "avx512", "avx2", "baseline"
  std::string instructions() const;

  /// What is read of the operands once per call, in the workspace.
  struct Call;
  Call begin(const KernelArguments& arguments) const;
  void run(const Call& call, const ProductPart& part) const;

 private:
  struct Memory;
  struct Share;
  struct Parts;
  Parts parts_for(int threads) const;
  Memory memory() const;
  void prepare_columns(const Call& call, const ProductPart& part, int64_t first, int64_t last) const;
  /// That multiplies by these columns, with the sums of tile_.
  MultiplyTile loop_for(const uint8_t* columns, int64_t bytes) const;
  void multiply(const Call& call, const ProductPart& part, const Share& share) const;
  void finish_tile(const Call& call, const ProductPart& part, const IntegerTile& tile, int64_t row,
                   int64_t column) const;
  /// Sums of these rows, from a row and column of the part on, with what is added to them and taken off.
  void end_rows(const Call& call, const ProductPart& part, RowSums rows, int64_t row, int64_t column) const;

  ProductPlan plan_;
  bool uses_vnni_;
  MultiplyTile tile_;
  NarrowColumns narrow_;  // of columns that are signed bytes, else null
  FinishTile finish_;     // null: sums go through memory
  const RowLoops& loops_;
  int64_t block_rows_;  // packed at a time, at most
};

struct IntegerProduct::Call {
  const KernelArguments* arguments;
  int32_t a_zero = 0;           // a0'
  bool has_b_zeros = false;     // some b0' is not 0
  int32_t* b_zeros = nullptr;   // b0' of each channel
  int32_t* added = nullptr;     // of each channel
  ChannelFactors factors = {};  // of each channel
  uint8_t* ones = nullptr;      // a row of ones, zeros behind it
  uint8_t* columns = nullptr;   // packed ones
  std::byte* shares = nullptr;  // rows and their sums, for each thread
};

}  // namespace weft::native
