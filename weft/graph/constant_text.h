// Constants in a graph's text, and the data that do not stand there.
//
//   <i64[3] 1,-1,64>          few elements: all of them, in row-major order
//   <f32[64,3,7,7] hash=...>  more: the data are in a table by that hash, which a file beside the text can hold
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "weft/graph/constant.h"

namespace weft {

class Graph;

/// The text holds the elements of constants that have no more.
inline constexpr int64_t kMostElementsInText = 16;

/// By the 32 digits of the hash.
using ConstantTable = std::map<std::string, Constant>;

std::string print_constant(const Constant& constant);
/// Error(data) with the text; Error(usage) where the data are neither in the text nor in the table.
Constant parse_constant(std::string_view text, const ConstantTable& constants);

/// The file of constants that belongs to the file of a graph: "graph.weft.constants".
std::filesystem::path constants_path(const std::filesystem::path& graph_file);
/// Those whose data the graph's text does not hold.
ConstantTable find_constants(const Graph& graph);
/// A safetensors file of bytes by hash; the metadata have the types. Whole or absent.
void write_constants(const std::filesystem::path& path, const ConstantTable& constants);
/// Error(data), naming the path, where the bytes are not those of the hash.
ConstantTable read_constants(const std::filesystem::path& path);

}  // namespace weft
