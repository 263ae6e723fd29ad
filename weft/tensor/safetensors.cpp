#include "weft/tensor/safetensors.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/mapped_file.h"

namespace weft {

namespace {

using nlohmann::json;

struct Name {
  DType dtype;
  const char* spelled;
};
constexpr Name kNames[] = {{DType::f32, "F32"},     {DType::f64, "F64"}, {DType::bf16, "BF16"}, {DType::f16, "F16"},
                           {DType::i64, "I64"},     {DType::i32, "I32"}, {DType::i16, "I16"},   {DType::i8, "I8"},
                           {DType::u64, "U64"},     {DType::u32, "U32"}, {DType::u16, "U16"},   {DType::u8, "U8"},
                           {DType::boolean, "BOOL"}};
constexpr uint64_t kLongestHeader = 100'000'000;  // the limit of the format's reference implementation

const char* spelled(const SafetensorsEntry& entry) {
  for (const Name& name : kNames)
    if (name.dtype == entry.type.dtype) return name.spelled;
  fail(ErrorKind::usage, "tensor '{}' is {}: safetensors files have no packed types; cast it to {} first", entry.name,
       to_string(entry.type), is_signed(entry.type.dtype) ? "i8" : "u8");
}

/// Of a tensor, in the file's data.
struct ByteRange {
  uint64_t begin, end;
  std::string name;
};

/// The format's specification wants every byte of the data to be of one tensor: what lies between or behind them is no
/// one's, and may be another file's.
void require_no_holes(const std::string& path, std::vector<ByteRange> ranges, uint64_t data_bytes) {
  std::sort(ranges.begin(), ranges.end(),
            [](const ByteRange& a, const ByteRange& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  uint64_t at = 0;
  for (const ByteRange& range : ranges) {
    if (range.begin != at)
      fail(ErrorKind::data,
           "'{}': tensor '{}' begins at byte {} of the data, the one before it ends at {}; copy the "
           "file again",
           path, range.name, range.begin, at);
    at = range.end;
  }
  if (at != data_bytes)
    fail(ErrorKind::data, "'{}' has {} bytes behind its tensors; copy the file again", path, data_bytes - at);
}

/// How long the header of a file of `file_bytes` is, from its first bytes.
uint64_t read_header_bytes(const std::string& path, const void* begin, uint64_t file_bytes) {
  uint64_t header_bytes = 0;
  if (file_bytes < sizeof header_bytes)
    fail(ErrorKind::data, "'{}' is no safetensors file: {} bytes are too few", path, file_bytes);
  std::memcpy(&header_bytes, begin, sizeof header_bytes);
  if (header_bytes > kLongestHeader || header_bytes > file_bytes - sizeof header_bytes)
    fail(ErrorKind::data, "'{}' is no whole safetensors file: its header wants {} bytes, the file has {}", path,
         header_bytes, file_bytes - sizeof header_bytes);
  return header_bytes;
}

/// Error(data) where a name stands twice in the header: readers differ in which of the two they take.
json parse_header(const std::string& path, const char* begin, const char* end) {
  std::set<std::string> names;
  std::string twice;
  json header = json::parse(
      begin, end,
      [&](int depth, json::parse_event_t event, json& parsed) {
        if (event == json::parse_event_t::key && depth == 1 && !names.insert(parsed.get<std::string>()).second)
          twice = parsed.get<std::string>();
        return true;
      },
      /*allow_exceptions=*/false);
  if (!header.is_object()) fail(ErrorKind::data, "'{}' is no safetensors file: its header is no JSON object", path);
  if (!twice.empty()) fail(ErrorKind::data, "'{}' has two tensors '{}'; make it anew", path, twice);
  return header;
}

Shape read_shape(const std::string& path, const std::string& name, const json& shape) {
  std::vector<int64_t> dims;
  for (const json& dim : shape) {
    if (!dim.is_number_unsigned())
      fail(ErrorKind::data, "'{}': tensor '{}' has a dimension that is no whole number", path, name);
    dims.push_back(static_cast<int64_t>(std::min<uint64_t>(dim.get<uint64_t>(), INT64_MAX)));
  }
  Shape read(std::move(dims));
  if (!has_bounded_size(read)) fail(ErrorKind::data, "'{}': tensor '{}' has an absurd shape", path, name);
  return read;
}

std::map<std::string, std::string> read_metadata(const std::string& path, const json& entry) {
  if (!entry.is_object()) fail(ErrorKind::data, "'{}': __metadata__ is no JSON object", path);
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : entry.items())
    if (value.is_string()) metadata[key] = value.get<std::string>();
  return metadata;
}

/// Checks one header entry, of a file with so many bytes of data; every number in it comes from outside and is
/// distrusted. Notes in `ranges` which bytes it has.
TensorType read_type(const std::string& path, const std::string& name, const json& entry, uint64_t data_bytes,
                     std::vector<ByteRange>& ranges) {
  const auto bad = [&](const std::string& why) { fail(ErrorKind::data, "'{}': tensor '{}' {}", path, name, why); };
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets"))
    bad("lacks dtype, shape or data_offsets");
  if (!entry["dtype"].is_string() || !entry["shape"].is_array() || !entry["data_offsets"].is_array() ||
      entry["data_offsets"].size() != 2)
    bad("has a dtype, shape or data_offsets of the wrong kind");
  const auto dtype_name = entry["dtype"].get<std::string>();
  const Name* known = std::find_if(std::begin(kNames), std::end(kNames),
                                   [&](const Name& candidate) { return dtype_name == candidate.spelled; });
  if (known == std::end(kNames)) bad("has dtype " + dtype_name + ", which weft does not read");
  const Shape shape = read_shape(path, name, entry["shape"]);
  for (const json& offset : entry["data_offsets"])
    if (!offset.is_number_unsigned()) bad("has an offset that is no whole number");
  const auto begin = entry["data_offsets"][0].get<uint64_t>(), end = entry["data_offsets"][1].get<uint64_t>();
  const uint64_t wanted = static_cast<uint64_t>(byte_size(known->dtype, shape.elements()));
  if (begin > end || end > data_bytes)
    bad(fmt::format("ends at byte {} of the data, but the file holds {}; it is truncated, copy it again", end,
                    data_bytes));
  if (end - begin != wanted) bad(fmt::format("has {} bytes, its shape wants {}", end - begin, wanted));
  ranges.push_back({begin, end, name});
  return {known->dtype, shape, {}};
}

}  // namespace

SafetensorsFile read_safetensors(const std::filesystem::path& path) {
  const std::vector<uint8_t> bytes = read_bytes(path);
  const std::string shown = path.string();
  const uint64_t header_bytes = read_header_bytes(shown, bytes.data(), bytes.size());
  const char* text = reinterpret_cast<const char*>(bytes.data()) + sizeof header_bytes;
  const json header = parse_header(shown, text, text + header_bytes);
  const uint64_t data_begin = sizeof header_bytes + header_bytes;
  std::vector<ByteRange> ranges;
  SafetensorsFile file;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      file.metadata = read_metadata(shown, entry);
    } else {
      Tensor tensor(read_type(shown, name, entry, bytes.size() - data_begin, ranges));
      if (tensor.bytes() != 0)
        std::memcpy(tensor.data(), bytes.data() + data_begin + ranges.back().begin,
                    static_cast<size_t>(tensor.bytes()));
      file.tensors.emplace(name, std::move(tensor));
    }
  }
  require_no_holes(shown, std::move(ranges), bytes.size() - data_begin);
  return file;
}

SafetensorsHeader read_safetensors_header(const std::filesystem::path& path) {
  const MappedFile mapped(path);
  const std::span<const uint8_t> bytes = mapped.bytes();
  const std::string shown = path.string();
  const uint64_t header_bytes = read_header_bytes(shown, bytes.data(), bytes.size());
  const char* text = reinterpret_cast<const char*>(bytes.data()) + sizeof header_bytes;
  const json parsed = parse_header(shown, text, text + header_bytes);
  SafetensorsHeader header;
  for (const auto& [name, entry] : parsed.items()) {
    if (name == "__metadata__")
      header.metadata = read_metadata(shown, entry);
    else if (entry.is_object() && entry.contains("shape") && entry["shape"].is_array())
      header.shapes.emplace(name, read_shape(shown, name, entry["shape"]));
  }
  return header;
}

SafetensorsReader::SafetensorsReader(std::filesystem::path path) : path_(std::move(path)) {
  const std::string shown = path_.string();
  const auto file_bytes = [&] {
    std::error_code code;
    const auto bytes = std::filesystem::file_size(path_, code);
    if (!code) file_.open(path_, std::ios::binary);
    if (code || !file_)
      fail(ErrorKind::io, "cannot read '{}': {}", shown, code ? code.message() : "it cannot be opened");
    return static_cast<uint64_t>(bytes);
  }();
  std::string text(std::min<uint64_t>(file_bytes, sizeof(uint64_t)), 0);
  file_.read(text.data(), static_cast<std::streamsize>(text.size()));
  const uint64_t header_bytes = read_header_bytes(shown, text.data(), file_bytes);
  text.resize(header_bytes);
  file_.read(text.data(), static_cast<std::streamsize>(header_bytes));
  if (!file_) fail(ErrorKind::io, "cannot read the header of '{}'", shown);
  const json header = parse_header(shown, text.data(), text.data() + text.size());
  const uint64_t data_begin = sizeof header_bytes + header_bytes;
  std::vector<ByteRange> ranges;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    types_.emplace(name, read_type(shown, name, entry, file_bytes - data_begin, ranges));
    begins_.emplace(name, data_begin + ranges.back().begin);
  }
  require_no_holes(shown, std::move(ranges), file_bytes - data_begin);
}

Tensor SafetensorsReader::read(const std::string& name) {
  const auto type = types_.find(name);
  if (type == types_.end()) fail(ErrorKind::usage, "'{}' has no tensor '{}'", path_.string(), name);
  Tensor tensor(type->second);
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(begins_.at(name)));
  file_.read(tensor.data_as<char>(), static_cast<std::streamsize>(tensor.bytes()));
  if (!file_) fail(ErrorKind::io, "cannot read '{}' of '{}'; copy the file again", name, path_.string());
  return tensor;
}

void write_safetensors(AtomicFile& out, const std::vector<SafetensorsEntry>& entries,
                       const std::map<std::string, std::string>& metadata,
                       const std::function<Tensor(const std::string& name)>& tensor_of) {
  json header = json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const SafetensorsEntry& entry : entries) {
    const TensorType& type = entry.type;
    check(type.layout.is_plain(), "safetensors files hold plain tensors");
    const auto end = offset + static_cast<uint64_t>(type.bytes());
    header[entry.name] = {{"dtype", spelled(entry)}, {"shape", type.shape.dims()}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // data starts aligned, as the format recommends
  const uint64_t header_bytes = text.size();
  out.write(&header_bytes, sizeof header_bytes);
  out.write(text.data(), text.size());
  for (const auto& [name, type] : entries) {
    const Tensor tensor = tensor_of(name);
    check(tensor.type() == type, "a tensor is not what its entry in the header says");
    out.write(tensor.data(), static_cast<size_t>(tensor.bytes()));
  }
}

void write_safetensors(const std::filesystem::path& path, const SafetensorsFile& file) {
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, tensor] : file.tensors) entries.push_back({name, tensor.type()});
  AtomicFile out(path);
  write_safetensors(out, entries, file.metadata, [&](const std::string& name) { return file.tensors.at(name); });
  out.commit();
}

}  // namespace weft
