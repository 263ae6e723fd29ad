#include "weft/cpu/native/integer/product.h"

#include <algorithm>
#include <cstring>

#include "weft/base/parallel.h"

namespace weft::native {

namespace {

// Of packed rows: they stay in the second-level cache beside four blocks of columns, which all of them meet. Where rows
// are few and long, all are packed at once, so that the columns come from memory once.
constexpr int64_t kRowBytes = 320 << 10;
constexpr int64_t kMostRows = 96;           // packed at a time, a multiple of kTileRows
constexpr int64_t kFewTiles = 8;            // of rows, for each thread
constexpr double kUneven = 1.04;            // what the largest share of rows may have more than that of columns
constexpr int64_t kLeastWork = 1 << 19;     // multiplications that are worth a second thread
constexpr int64_t kPackingGrain = 1 << 16;  // bytes of columns that are worth a thread

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

void ProductPlan::read_operands(const NodeSignature& node, int64_t channel_count) {
  channels = channel_count;
  a = node.inputs[0].dtype;
  b = node.inputs[1].dtype;
  result = node.outputs[0].dtype;
  has_a_zero = node.inputs.size() > 2;
  has_b_zero = node.inputs.size() > 3;
  b_zero_per_channel = has_b_zero && node.inputs[3].shape.rank() == 1;
  if (result == DType::i32) return;
  factor_per_channel = node.inputs[4].shape.rank() == 1;
  has_integer_bias = writes_bytes() && node.inputs.size() > 6;
  has_real_bias = !writes_bytes() && node.inputs.size() > 5;
  if (writes_bytes()) rule = ops::requantization_of(node.attributes, result);
}

/// Where things lie in the workspace.
struct IntegerProduct::Memory {
  int64_t b_zeros, added, factors, multipliers, shifts, ones, columns, shares, share_bytes, rows_bytes, all;
};

IntegerProduct::Memory IntegerProduct::memory() const {
  Memory memory{};
  int64_t at = 0;
  const auto take = [&](int64_t bytes) {
    const int64_t begin = at;
    at += align_up(bytes);
    return begin;
  };
  // Tiles read whole blocks, wherever their first channel is.
  const int64_t channel_bytes = (plan_.channels + kTileColumns) * 4;
  for (int64_t* place : {&memory.b_zeros, &memory.added, &memory.factors, &memory.multipliers, &memory.shifts})
    *place = take(channel_bytes);
  memory.ones = take(plan_.size.padded);
  memory.columns = take(plan_.size.packed_bytes());
  memory.rows_bytes = align_up(block_rows_ * plan_.size.padded + kPackingSlack);
  memory.share_bytes = memory.rows_bytes + align_up(block_rows_ * 4);
  memory.shares = take(plan_.threads * memory.share_bytes);
  memory.all = at;
  return memory;
}

IntegerProduct::IntegerProduct(ProductPlan plan)
    : plan_(plan),
      uses_vnni_(plan_.isa == Isa::avx512 && multiplies_bytes() && vnni_multiply_tile() != nullptr),
      tile_(multiply_tile_for(plan_.isa, uses_vnni_)),
      narrow_(uses_vnni_ || plan_.b != DType::i8 ? NarrowColumns{} : narrow_columns_for(plan_.isa)),
      finish_(uses_vnni_ && plan_.writes_bytes() && plan_.rule.rounding == ops::RequantizeRounding::real
                  ? vnni_finish_tile()
                  : nullptr),
      loops_(row_loops_for(plan_.isa)) {
  const int64_t fitting = kRowBytes / std::max<int64_t>(1, plan_.size.padded) / kTileRows * kTileRows;
  block_rows_ = std::clamp<int64_t>(fitting, kTileRows, kMostRows);
}

int64_t IntegerProduct::workspace_bytes() const { return memory().all; }

std::string IntegerProduct::instructions() const { return uses_vnni_ ? "vnni" : std::string(name_of(plan_.isa)); }

IntegerProduct::Call IntegerProduct::begin(const KernelArguments& arguments) const {
  const Memory places = memory();
  auto* const workspace = static_cast<std::byte*>(arguments.workspace);
  const auto at = [&](int64_t place) { return workspace + place; };
  Call call;
  call.arguments = &arguments;
  call.b_zeros = reinterpret_cast<int32_t*>(at(places.b_zeros));
  call.added = reinterpret_cast<int32_t*>(at(places.added));
  call.ones = reinterpret_cast<uint8_t*>(at(places.ones));
  call.columns = reinterpret_cast<uint8_t*>(at(places.columns));
  call.shares = at(places.shares);
  call.a_zero = (plan_.has_a_zero ? byte_of(plan_.a, arguments.inputs[2], 0) : 0) + (plan_.a == DType::i8 ? 128 : 0);
  for (int64_t c = 0; c < plan_.channels; ++c) {
    const int32_t zero = plan_.has_b_zero ? byte_of(plan_.b, arguments.inputs[3], plan_.b_zero_per_channel ? c : 0) : 0;
    call.b_zeros[c] = zero - (plan_.b == DType::u8 ? 128 : 0);
    call.has_b_zeros = call.has_b_zeros || call.b_zeros[c] != 0;
  }
  if (plan_.result == DType::i32) return call;
  auto* const factors = reinterpret_cast<float*>(at(places.factors));
  auto* const multipliers = reinterpret_cast<int32_t*>(at(places.multipliers));
  auto* const shifts = reinterpret_cast<int32_t*>(at(places.shifts));
  for (int64_t c = 0; c < plan_.channels; ++c) {
    factors[c] = arguments.input(4)[plan_.factor_per_channel ? c : 0];
    if (plan_.rule.rounding == ops::RequantizeRounding::real) continue;
    const ops::FixedFactor fixed = ops::fixed_factor(factors[c], plan_.rule.multiplier_bits);
    multipliers[c] = static_cast<int32_t>(fixed.multiplier);
    shifts[c] = fixed.shift;
  }
  call.factors = {factors, multipliers, shifts, 0, plan_.rule.range};
  if (plan_.writes_bytes()) call.factors.zero_point = byte_of(plan_.result, arguments.inputs[5], 0);
  return call;
}

/// Packs columns that lie otherwise, and sums up what is added to each.
void IntegerProduct::prepare_columns(const Call& call, const ProductPart& part, int64_t first, int64_t last) const {
  const ProductSize& size = plan_.size;
  const int64_t block_bytes = size.groups() * kGroupBytes;
  const uint8_t* columns = part.packed;
  if (columns == nullptr) {
    part.pack_columns(first, last, call.columns + first * block_bytes);
    columns = call.columns;
  }
  const MultiplyTile sum_up = narrow_.multiply != nullptr ? narrow_.multiply : tile_;  // ones make no sums of 16 bits
  for (int64_t block = first; block < last; block += kTileBlocks) {
    int32_t sums[kTileColumns] = {};
    const int64_t blocks = std::min(kTileBlocks, last - block);
    if (call.a_zero != 0 && size.groups() > 0)
      sum_up({call.ones, size.padded, columns + block * block_bytes, block_bytes, size.groups(), 1, blocks,
              plan_.b == DType::u8, sums});
    const int64_t end = std::min(size.columns, (block + blocks) * kColumnBlock);
    for (int64_t column = block * kColumnBlock; column < end; ++column) {
      const int64_t channel = part.first_channel + column;
      const int64_t constant =
          size.inner * call.a_zero * call.b_zeros[channel] - int64_t{call.a_zero} * sums[column - block * kColumnBlock];
      const int32_t bias = plan_.has_integer_bias ? call.arguments->input<int32_t>(6)[channel] : 0;
      call.added[channel] = ops::add_wrapping(static_cast<int32_t>(static_cast<uint64_t>(constant)), bias);
    }
  }
}

/// Rows and blocks of columns of one thread.
struct IntegerProduct::Share {
  int64_t first_row, last_row, first_block, last_block;
  uint8_t* rows;
  int32_t* row_sums;
};

/// How threads share out a product: `rows` parts of its rows by `columns` parts of its columns.
struct IntegerProduct::Parts {
  int rows, columns;
};

/// Threads share out rows. Where there are few tiles of rows for each, and more of columns, or columns come out more
/// evenly, they share out columns: each packs all rows for itself, but reads its own columns only.
IntegerProduct::Parts IntegerProduct::parts_for(int threads) const {
  const int64_t tiles = (plan_.size.rows + kTileRows - 1) / kTileRows;
  const int64_t tile_columns = (plan_.size.blocks() + kTileBlocks - 1) / kTileBlocks;
  const auto largest_share = [&](int64_t count) {  // of the whole
    return static_cast<double>((count + threads - 1) / threads) / static_cast<double>(count);
  };
  const bool rows_are_uneven = largest_share(tiles) > kUneven * largest_share(tile_columns);
  if (tile_columns >= 2 * threads && (tiles < kFewTiles * threads || rows_are_uneven)) return {1, threads};
  const auto rows = static_cast<int>(std::min<int64_t>(threads, tiles));
  return {rows, static_cast<int>(std::clamp<int64_t>(threads / rows, 1, tile_columns))};
}

void IntegerProduct::run(const Call& call, const ProductPart& part) const {
  const ProductSize& size = plan_.size;
  if (size.rows == 0 || size.columns == 0) return;
  std::memset(call.ones, 1, static_cast<size_t>(size.padded));
  const int threads = size.rows * size.columns * size.padded < kLeastWork ? 1 : plan_.threads;
  const int64_t blocks = size.blocks(), block_bytes = std::max<int64_t>(1, size.groups() * kGroupBytes);
  const bool has_columns_to_read = part.packed == nullptr || call.a_zero != 0;
  parallel_for(has_columns_to_read ? threads : 1, blocks, std::max<int64_t>(1, kPackingGrain / block_bytes),
               [&](int64_t first, int64_t last) { prepare_columns(call, part, first, last); });
  const int64_t tiles = (size.rows + kTileRows - 1) / kTileRows;
  const int64_t tile_columns = (blocks + kTileBlocks - 1) / kTileBlocks;
  const Parts parts = parts_for(threads);
  const Memory places = memory();
  parallel_run(threads, parts.rows * parts.columns, [&](int index, int total) {
    // A team may be smaller than asked for.
    const auto [first_part, last_part] = split_range(parts.rows * parts.columns, index, total);
    for (int64_t at = first_part; at < last_part; ++at) {
      const auto [first_tile, last_tile] = split_range(tiles, static_cast<int>(at) % parts.rows, parts.rows);
      const auto [first_column, last_column] =
          split_range(tile_columns, static_cast<int>(at) / parts.rows, parts.columns);
      std::byte* const own = call.shares + index * places.share_bytes;
      multiply(call, part,
               {first_tile * kTileRows, std::min(size.rows, last_tile * kTileRows), first_column * kTileBlocks,
                std::min(blocks, last_column * kTileBlocks), reinterpret_cast<uint8_t*>(own),
                reinterpret_cast<int32_t*>(own + places.rows_bytes)});
    }
  });
}

/// Columns are read just before they are multiplied, which wants them in the caches too.
MultiplyTile IntegerProduct::loop_for(const uint8_t* columns, int64_t bytes) const {
  return narrow_.multiply != nullptr && narrow_.are_narrow(columns, bytes) ? narrow_.multiply : tile_;
}

void IntegerProduct::multiply(const Call& call, const ProductPart& part, const Share& share) const {
  const ProductSize& size = plan_.size;
  const uint8_t* const columns = part.packed != nullptr ? part.packed : call.columns;
  const int64_t block_bytes = size.groups() * kGroupBytes;
  // As many rows at a time as fit, all times alike.
  const int64_t rows_in_all = share.last_row - share.first_row;
  const bool finds_rows = part.find_rows && uses_vnni_ && !call.has_b_zeros;
  const int64_t most_rows = finds_rows ? kMostRows : block_rows_;
  const int64_t turns = std::max<int64_t>(1, (rows_in_all + most_rows - 1) / most_rows);
  const int64_t step = std::min(most_rows, round_up((rows_in_all + turns - 1) / turns, kTileRows));
  const auto pieces = static_cast<int64_t>(part.pieces.size());
  int32_t sums[kTileRows * kTileColumns];
  const uint8_t* starts[kTileRows];
  for (int64_t row = share.first_row; row < share.last_row; row += step) {
    const int64_t end = std::min(share.last_row, row + step);
    const bool is_direct = part.direct != nullptr;
    if (!is_direct && !finds_rows) part.pack_rows(row, end, share.rows);
    const uint8_t* const rows = is_direct ? part.direct + row * part.direct_row : share.rows;
    const int64_t row_bytes = is_direct ? part.direct_row : size.padded;
    if (call.has_b_zeros)
      for (int64_t r = row; r < end; ++r)
        share.row_sums[r - row] = loops_.sum(rows + (r - row) * row_bytes, size.padded);
    for (int64_t block = share.first_block; block < share.last_block; block += kTileBlocks) {
      const int64_t block_count = std::min(kTileBlocks, share.last_block - block);
      const int64_t column = block * kColumnBlock;
      const int64_t count = std::min(size.columns, column + block_count * kColumnBlock) - column;
      const MultiplyTile multiply_tile = loop_for(columns + block * block_bytes, block_count * block_bytes);
      for (int64_t first = row; first < end; first += kTileRows) {
        IntegerTile tile{
            rows + (first - row) * row_bytes, row_bytes,   columns + block * block_bytes, block_bytes, size.groups(),
            std::min(kTileRows, end - first), block_count, plan_.b == DType::u8,          sums};
        if (finds_rows) {
          part.find_rows(first, tile.rows, starts);
          tile.row_starts = starts;
          tile.pieces = part.pieces.data();
          tile.piece_count = pieces;
          tile.groups = size.groups() / pieces;
        }
        if (finish_ != nullptr && !call.has_b_zeros) {
          finish_tile(call, part, tile, first, column);
          continue;
        }
        multiply_tile(tile);
        const int64_t at_once = call.has_b_zeros || !plan_.writes_bytes() ? 1 : tile.rows;
        for (int64_t r = 0; r < tile.rows; r += at_once)
          end_rows(call, part,
                   {sums + r * kTileColumns, nullptr, nullptr, call.has_b_zeros ? share.row_sums[first + r - row] : 0,
                    count, at_once, kTileColumns, part.row_elements},
                   first + r, column);
      }
    }
  }
}

void IntegerProduct::finish_tile(const Call& call, const ProductPart& part, const IntegerTile& tile, int64_t row,
                                 int64_t column) const {
  const int64_t channel = part.first_channel + column;
  const int64_t columns = std::min(plan_.size.columns - column, tile.blocks * kColumnBlock);
  finish_(tile, {call.added + channel, call.factors.factors + channel, call.factors.zero_point, call.factors.range,
                 plan_.result == DType::i8,
                 call.arguments->output<uint8_t>(0) + part.first_element + row * part.row_elements + column,
                 part.row_elements, columns});
}

void IntegerProduct::end_rows(const Call& call, const ProductPart& part, RowSums rows, int64_t row,
                              int64_t column) const {
  const int64_t channel = part.first_channel + column;
  rows.added = call.added + channel;
  if (call.has_b_zeros) rows.zeros = call.b_zeros + channel;
  const int64_t element = part.first_element + row * part.row_elements + column;
  if (plan_.result == DType::i32) return loops_.store_sums(rows, call.arguments->output<int32_t>(0) + element);
  if (plan_.result == DType::f32)
    return loops_.store_reals(rows, call.factors.factors + channel,
                              plan_.has_real_bias ? call.arguments->input(5) + channel : nullptr,
                              call.arguments->output(0) + element);
  const ByteLoops& bytes = plan_.result == DType::i8 ? loops_.of_i8 : loops_.of_u8;
  ChannelFactors factors = call.factors;
  factors.factors += channel;
  factors.multipliers += channel;
  factors.shifts += channel;
  (plan_.rule.rounding == ops::RequantizeRounding::real ? bytes.requantize_real : bytes.requantize_fixed)(
      rows, factors, call.arguments->output<uint8_t>(0) + element);
}

}  // namespace weft::native
