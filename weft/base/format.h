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
/// For durations that users write: "90m", "2h", "1h 30m", "1.5d", "45s", "3600" (seconds). In seconds; nullopt where it
/// is no such text or not above 0.
std::optional<double> parse_duration(std::string_view text);
/// "15 us", "230 ms", "5.3 s", "2m 03s", "1h 02m", "3d 04h"; "?" where the value is no finite number.
std::string human_duration(double seconds);
/// For a terminal: control characters, which could move its cursor or change its colours, as "\x1b". Line ends stay.
std::string printable(std::string_view text);
/// As one word of a command line of the shell, in single quotes where it needs them.
std::string quoted_for_shell(const std::string& text);
/// "93.52 %" of a share in [0, 1]; "-" where there is none.
std::string percent(const std::optional<double>& share);
/// "999", "44.4k", "11.7M", "4.10G"
std::string human_count(double count);

}  // namespace weft
