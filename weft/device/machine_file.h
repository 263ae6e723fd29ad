// Files of what was measured on one machine: a line of JSON that says of which machine they are, then lines of rows.
// What is of another machine, of another format, or damaged is refused. For the times of kernels side by side
// (kernel_cache.h) and those of ops within steps (op_times_file.h).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace weft {

/// `lines`: so many rows, each ending in a newline.
std::string print_machine_file(int format, const std::string& machine, size_t rows, const std::string& lines);
/// The rows. Error(data), what is wrong with the text alone, where it is damaged, of another format or machine.
std::string_view rows_of_machine_file(std::string_view text, int format, const std::string& machine);

/// "KIND-1234abcd.jsonl", by the machine.
std::string name_of_machine_file(std::string_view kind, const std::string& machine);

/// Keeps other programs from doing the same until the result dies. Error(io).
std::shared_ptr<void> lock_machine_files(const std::filesystem::path& directory);

/// $WEFT_CACHE_DIR, else $XDG_CACHE_HOME/weft, else $HOME/.cache/weft. Error(usage) where none of them is set.
std::filesystem::path directory_of_machine_files();

}  // namespace weft
