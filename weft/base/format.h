// Numbers as people read them: bytes, durations, counts. Three significant digits, short enough for a table cell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft {

/// "512 B", "1.50 kB", "12.3 MB", "1.20 GB": decimal units, as disks and networks count.
std::string human_bytes(double bytes);
/// Reverses it for what users write: "1.5GB", "800 MB", "2GiB" (binary units), "1000000"; nullopt where it is no such
/// text, or not above 0, or more than 2^62.
std::optional<int64_t> parse_bytes(std::string_view text);
/// "15 us", "230 ms", "5.3 s", "2m 03s", "1h 02m", "3d 04h"; "?" where the value is no finite number.
std::string human_duration(double seconds);
/// "93.52 %" of a share in [0, 1]; "-" where there is none.
std::string percent(const std::optional<double>& share);
/// "999", "44.4k", "11.7M", "4.10G"
std::string human_count(double count);

}  // namespace weft
