#include "weft/engine/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/hash128.h"
#include "weft/base/mapped_file.h"

namespace weft::engine {

namespace {

using nlohmann::ordered_json;

constexpr std::string_view kMagic = "weft-model ";
constexpr int64_t kVersion = 1;
constexpr size_t kFirstLineBytes = 64;

std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

ordered_json ports_json(const std::vector<Port>& ports) {
  auto list = ordered_json::array();
  for (const Port& port : ports) list.push_back({{"name", port.name}, {"type", port.type}});
  return list;
}

ordered_json pictures_json(const PictureInput& pictures) {
  return {{"channels", pictures.channels},
          {"height", pictures.height},
          {"width", pictures.width},
          {"resize", pictures.resize},
          {"mean", pictures.mean},
          {"deviation", pictures.deviation},
          {"decodes_exactly", pictures.decodes_exactly}};
}

/// Where the next part begins, and how far the file goes then.
class Places {
 public:
  int64_t take(int64_t bytes) {
    const int64_t offset = align_up(end_);
    end_ = offset + bytes;
    return offset;
  }
  int64_t end() const { return end_; }

 private:
  int64_t end_ = 0;
};

std::string header_of(const DeployedModel& model) {
  ordered_json root{{"name", model.name}, {"precision", name_of(model.precision)}, {"metadata", model.metadata}};
  root["inputs"] = ports_json(model.inputs);
  root["outputs"] = ports_json(model.outputs);
  root["classes"] = model.classes;
  if (model.pictures) root["pictures"] = pictures_json(*model.pictures);
  Places places;
  root["graphs"] = ordered_json::array();
  for (const DeployedGraph& graph : model.graphs) {
    const auto bytes = static_cast<int64_t>(graph.text.size());
    root["graphs"].push_back({{"batch", graph.batch},
                              {"offset", places.take(bytes)},
                              {"bytes", bytes},
                              {"hash", to_string(hash128(as_bytes(graph.text)))}});
  }
  root["constants"] = ordered_json::array();
  for (const auto& [hash, constant] : model.constants)
    root["constants"].push_back(
        {{"hash", hash}, {"type", to_string(constant->type())}, {"offset", places.take(constant->type().bytes())}});
  root["bytes"] = places.end();
  return root.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

void fill_to_alignment(AtomicFile& out) {
  constexpr std::array<char, kAlignment> kZeros{};
  const auto written = static_cast<int64_t>(out.bytes());
  out.write(kZeros.data(), static_cast<size_t>(align_up(written) - written));
}

/// A file's parts as the header names them.
class Reader {
 public:
  /// `mapping` is null where the bytes are no mapped file.
  Reader(std::span<const uint8_t> bytes, std::shared_ptr<const void> owner, std::shared_ptr<const MappedFile> mapping,
         const std::string& name)
      : bytes_(bytes), owner_(std::move(owner)), mapping_(std::move(mapping)), name_(name) {}

  DeployedModel read() {
    DeployedModel model;
    model.source = name_;
    model.mapping = mapping_;
    try {
      read_header();
      take_description(model);
      take_graphs(model);
      take_constants(model);
    } catch (const ordered_json::exception& error) {
      damaged(fmt::format("its header is not what it should be ({})", error.what()));
    }
    return model;
  }

 private:
  [[noreturn]] void damaged(const std::string& what) const {
    fail(ErrorKind::data, "'{}' is damaged: {}; copy it again", name_, what);
  }

  void read_header() {
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
    if (!text.starts_with(kMagic))
      fail(ErrorKind::data, "'{}' is no model that `weft compile` has written: it does not begin with '{}'", name_,
           kMagic.substr(0, kMagic.size() - 1));
    std::string_view line = text.substr(0, kFirstLineBytes);
    if (line.size() < kFirstLineBytes || line.back() != '\n') damaged("its first line is no line");
    line.remove_prefix(kMagic.size());
    const int64_t version = number(line), bytes = number(line);
    if (version != kVersion)
      fail(ErrorKind::data, "'{}' has version {} of the format, this weft reads version {}; use the weft that wrote it",
           name_, version, kVersion);
    const size_t rest = text.size() - kFirstLineBytes;
    if (bytes < 0 || static_cast<size_t>(bytes) > rest) damaged("it ends within its header");
    const std::string_view header = text.substr(kFirstLineBytes, static_cast<size_t>(bytes));
    if (!line.starts_with(to_string(hash128(as_bytes(header))))) damaged("its header is not what its checksum says");
    header_ = ordered_json::parse(header, nullptr, /*allow_exceptions=*/false);
    if (!header_.is_object()) damaged("its header is no JSON");
    const size_t begin = static_cast<size_t>(align_up(static_cast<int64_t>(kFirstLineBytes) + bytes));
    const int64_t wanted = header_.value("bytes", int64_t{-1});
    const size_t have = text.size() > begin ? text.size() - begin : 0;
    if (wanted < 0 || static_cast<size_t>(wanted) != have)
      damaged(fmt::format("{} bytes follow its header, which names {}", have, wanted));
    content_ = bytes_.subspan(std::min(begin, bytes_.size()));
  }

  /// The next number of the first line.
  int64_t number(std::string_view& line) const {
    const size_t begin = std::min(line.find_first_not_of(' '), line.size());
    line.remove_prefix(begin);
    int64_t value = -1;
    const auto [end, code] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (code != std::errc()) damaged("its first line has no number where one should be");
    line.remove_prefix(static_cast<size_t>(end - line.data()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    return value;
  }

  /// Of the bytes behind the header. No two have any in common, so that what is made of them is no larger than the
  /// file.
  std::span<const uint8_t> part(const ordered_json& entry, int64_t bytes, const char* what) {
    const auto offset = entry.at("offset").get<int64_t>();
    const auto size = static_cast<int64_t>(content_.size());
    if (offset < 0 || bytes < 0 || offset % kAlignment != 0 || offset > size || bytes > size - offset)
      damaged(fmt::format("a {} lies beyond its end", what));
    const auto next = ends_.upper_bound(offset);
    const bool is_free = (next == ends_.begin() || std::prev(next)->second <= offset) &&
                         (next == ends_.end() || offset + bytes <= next->first);
    if (bytes > 0 && !is_free) damaged(fmt::format("a {} lies where another part of it is", what));
    if (bytes > 0) ends_.emplace(offset, offset + bytes);
    return content_.subspan(static_cast<size_t>(offset), static_cast<size_t>(bytes));
  }

  static std::vector<Port> ports(const ordered_json& list) {
    std::vector<Port> result;
    for (const ordered_json& entry : list)
      result.push_back({entry.at("name").get<std::string>(), entry.at("type").get<std::string>()});
    return result;
  }

  void take_description(DeployedModel& model) const {
    model.name = header_.at("name").get<std::string>();
    const auto precision = header_.at("precision").get<std::string>();
    const auto dtype = parse_dtype(precision);
    if (!dtype || (*dtype != DType::f32 && *dtype != DType::bf16 && *dtype != DType::f16))
      damaged(fmt::format("its precision is '{}'", precision));
    model.precision = *dtype;
    model.metadata = header_.at("metadata").get<std::map<std::string, std::string>>();
    model.classes = header_.at("classes").get<std::vector<std::string>>();
    model.inputs = ports(header_.at("inputs"));
    model.outputs = ports(header_.at("outputs"));
    if (!header_.contains("pictures")) return;
    const ordered_json& given = header_.at("pictures");
    PictureInput pictures;
    pictures.channels = given.at("channels").get<int64_t>();
    pictures.height = given.at("height").get<int64_t>();
    pictures.width = given.at("width").get<int64_t>();
    pictures.resize = given.at("resize").get<int64_t>();
    pictures.decodes_exactly = given.at("decodes_exactly").get<bool>();
    pictures.mean = given.at("mean").get<std::vector<float>>();
    pictures.deviation = given.at("deviation").get<std::vector<float>>();
    check(pictures, fmt::format("'{}'", name_));
    model.pictures = std::move(pictures);
  }

  void take_graphs(DeployedModel& model) {
    for (const ordered_json& entry : header_.at("graphs")) {
      const auto bytes = part(entry, entry.at("bytes").get<int64_t>(), "graph");
      DeployedGraph graph{entry.at("batch").get<int64_t>(),
                          std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())};
      if (to_string(hash128(as_bytes(graph.text))) != entry.at("hash").get<std::string>())
        damaged("a graph is not what its checksum says");
      if (graph.batch < 0) damaged("a graph has a batch below 0");
      model.graphs.push_back(std::move(graph));
    }
    if (model.graphs.empty()) damaged("it has no graph");
  }

  TensorType type_of(const std::string& text) const {
    try {
      TensorType type = parse_tensor_type(text);
      if (has_bounded_size(type)) return type;
    } catch (const Error&) {
      damaged(fmt::format("'{}' is no type of a constant", text));
    }
    damaged(fmt::format("no memory holds a constant {}", text));
  }

  void take_constants(DeployedModel& model) {
    for (const ordered_json& entry : header_.at("constants")) {
      const auto hash = entry.at("hash").get<std::string>();
      const TensorType type = type_of(entry.at("type").get<std::string>());
      const auto bytes = part(entry, type.bytes(), "constant");
      // Kernels see constants as const; the mapping is read-only.
      auto* data = reinterpret_cast<std::byte*>(const_cast<uint8_t*>(bytes.data()));
      Constant constant(Tensor::adopt(type, std::shared_ptr<std::byte>(owner_, data)));
      if (to_string(constant->hash()) != hash)
        damaged(fmt::format("the constant {} is not what its checksum says", to_string(type)));
      if (mapping_) mapping_->drop(std::as_bytes(bytes));  // until it is packed
      model.constants.emplace(hash, std::move(constant));
    }
  }

  const std::span<const uint8_t> bytes_;
  const std::shared_ptr<const void> owner_;
  const std::shared_ptr<const MappedFile> mapping_;
  const std::string name_;
  ordered_json header_;
  std::span<const uint8_t> content_;
  std::map<int64_t, int64_t> ends_;  // of the parts that were read, by where they begin
};

}  // namespace

bool is_model_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, kMagic.size()> start{};
  file.read(start.data(), start.size());
  return file.gcount() == static_cast<std::streamsize>(start.size()) &&
         std::string_view(start.data(), start.size()) == kMagic;
}

void write_model(const std::filesystem::path& path, const DeployedModel& model) {
  const std::string header = header_of(model);
  std::string line =
      fmt::format("{}{} {:>12} {}", kMagic, kVersion, header.size(), to_string(hash128(as_bytes(header))));
  line.resize(kFirstLineBytes - 1, ' ');
  line += '\n';
  AtomicFile out(path);
  out.write(line.data(), line.size());
  out.write(header.data(), header.size());
  const auto add = [&](const void* data, size_t bytes) {
    fill_to_alignment(out);
    out.write(data, bytes);
  };
  for (const DeployedGraph& graph : model.graphs) add(graph.text.data(), graph.text.size());
  for (const auto& [hash, constant] : model.constants)
    add(constant->tensor().data(), static_cast<size_t>(constant->type().bytes()));
  out.commit();
}

DeployedModel read_model(const std::filesystem::path& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  return Reader(file->bytes(), file, file, path.string()).read();
}

DeployedModel parse_model(std::span<const uint8_t> bytes, std::shared_ptr<const void> owner, const std::string& name) {
  return Reader(bytes, std::move(owner), nullptr, name).read();
}

}  // namespace weft::engine
