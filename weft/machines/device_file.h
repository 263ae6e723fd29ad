// A device file: what a processor or an accelerator can do at most, how near work comes to that, and what it draws.
// People write it of a device that is not here; roofline.h makes times of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::machines {

/// In what products are computed. "f32", "tf32", "f16", "bf16", "f8", "i8" in files.
enum class Arithmetic { f32, tf32, f16, bf16, f8, i8 };
std::string_view name_of(Arithmetic arithmetic);
/// nullopt where there is none of that name.
std::optional<Arithmetic> parse_arithmetic(std::string_view name);
/// Of one number in memory. tf32 is stored as f32.
int64_t bytes_of(Arithmetic arithmetic);

/// Classes of work that come differently near to the rates. "convolution", "matrix_product", "attention", "memory" in
/// files; `memory` is all that reads and writes more than it computes.
enum class WorkClass { convolution, matrix_product, attention, memory };
std::string_view name_of(WorkClass work);

/// The share of a rate that work of size x reaches: best x / (x + half_size). So each call costs what half_size takes
/// at that rate, beside its work.
struct Efficiency {
  double best = 1;
  double half_size = 0;  // FLOP; bytes of the class `memory`
  /// Of products: outputs, and products per output, at which half of that is reached. Tiles fill the units in whole
  /// waves, so that half a wave stands idle; each tile begins and ends with time that no product hides.
  double half_outputs = 0, half_depth = 0;
  friend bool operator==(const Efficiency&, const Efficiency&) = default;
};

struct DeviceFile {
  std::string name;                            // "NVIDIA V100 SXM2 16 GB"
  std::map<Arithmetic, double> peak_flops;     // FLOP/s, dense; f32 is there always
  double memory_bytes = 0;                     // capacity
  double bytes_per_second = 0;                 // of the memory, both directions together
  double launch_seconds = 0;                   // of a kernel, however small
  std::map<WorkClass, Efficiency> efficiency;  // all classes
  /// How many times fewer products convolutions of 3x3 with stride 1 need in f32 (Winograd's algorithm; Lavin and Gray
  /// 2015: 2.25 with tiles of 2x2, less what the transforms cost). 1: the device has no such kernels.
  double winograd = 1;
  double idle_watts = 0, peak_watts = 0;  // 0: not rated
  /// (seconds of full load, share of the rates from then on), ascending. Empty: it keeps its rates.
  std::vector<std::pair<double, double>> throttling;

  /// FLOP/s of products in this arithmetic: that of its own units, else of the next wider ones that it has.
  double peak(Arithmetic arithmetic) const;
  const Efficiency& of(WorkClass work) const { return efficiency.at(work); }
  /// Of the rates, after so many seconds of full load.
  double rate_share(double seconds_of_load) const;
  /// Watts while it computes for this share of the time, in [0, 1].
  double watts(double busy_share) const { return idle_watts + busy_share * (peak_watts - idle_watts); }
  friend bool operator==(const DeviceFile&, const DeviceFile&) = default;
};

/// `path` is for messages. Error(data) naming the key, what is wrong and the next step, for a key that is missing,
/// unknown, of the wrong kind, or that contradicts another.
DeviceFile parse_device(std::string_view text, const std::string& path);
/// Parses back to the same.
std::string print_device(const DeviceFile& device);

}  // namespace weft::machines
