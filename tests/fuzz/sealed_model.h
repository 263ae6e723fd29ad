// A file of `weft compile` with checksums of what it holds, whatever it held before.
#pragma once

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/hash128.h"
#include "weft/graph/constant.h"
#include "weft/tensor/tensor.h"

namespace weft::fuzz {

namespace sealing {

using nlohmann::ordered_json;
constexpr size_t kLine = 64;

inline std::string hash_of(std::span<const uint8_t> bytes) { return to_string(hash128(std::as_bytes(bytes))); }

/// A part of the content; empty where the entry names none.
inline std::span<const uint8_t> part(std::span<const uint8_t> content, const ordered_json& entry, int64_t bytes) {
  const int64_t offset = entry.value("offset", int64_t{-1}), size = static_cast<int64_t>(content.size());
  if (offset < 0 || bytes < 0 || offset > size || bytes > size - offset) return {};
  return content.subspan(static_cast<size_t>(offset), static_cast<size_t>(bytes));
}

inline void seal_constant(ordered_json& entry, std::span<const uint8_t> content) {
  const TensorType type = parse_tensor_type(entry.at("type").get<std::string>());
  if (!has_bounded_size(type)) return;
  const auto bytes = part(content, entry, type.bytes());
  if (static_cast<int64_t>(bytes.size()) != type.bytes()) return;
  Tensor tensor(type);
  std::memcpy(tensor.data(), bytes.data(), bytes.size());
  entry["hash"] = to_string(ConstantData(tensor).hash());
}

inline void seal_parts(ordered_json& header, std::span<const uint8_t> content) {
  for (ordered_json& entry : header.at("graphs"))
    entry["hash"] = hash_of(part(content, entry, entry.at("bytes").get<int64_t>()));
  for (ordered_json& entry : header.at("constants")) seal_constant(entry, content);
  header["bytes"] = content.size();
}

}  // namespace sealing

/// Unchanged where it does not begin as such a file.
inline std::vector<uint8_t> sealed_model(std::span<const uint8_t> input) {
  using namespace sealing;
  const std::string line(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(std::min(input.size(), kLine)));
  long long length = -1;
  if (line.size() < kLine || std::sscanf(line.c_str(), "weft-model 1 %lld", &length) != 1 || length < 0 ||
      static_cast<size_t>(length) > input.size() - kLine)
    return {input.begin(), input.end()};
  std::string text(input.begin() + kLine, input.begin() + static_cast<std::ptrdiff_t>(kLine) + length);
  const size_t behind = std::min(input.size(), static_cast<size_t>(align_up(static_cast<int64_t>(kLine) + length)));
  const auto content = input.subspan(behind);
  ordered_json header = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    seal_parts(header, content);
    text = header.dump(1, ' ', false, ordered_json::error_handler_t::replace);
  } catch (const ordered_json::exception&) {
  } catch (const Error&) {
  }
  const std::span<const uint8_t> as_bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  std::string first = "weft-model 1 " + std::to_string(text.size()) + " " + hash_of(as_bytes);
  first.resize(kLine - 1, ' ');
  first += '\n';
  std::vector<uint8_t> sealed(first.begin(), first.end());
  sealed.insert(sealed.end(), text.begin(), text.end());
  sealed.resize(static_cast<size_t>(align_up(static_cast<int64_t>(sealed.size()))), 0);
  sealed.insert(sealed.end(), content.begin(), content.end());
  return sealed;
}

}  // namespace weft::fuzz
