// What every parser must bear: any bytes at all. Each target reads bytes as one kind of file; weft::Error is the right
// answer to damaged ones, anything else that goes wrong is a bug. What can be printed again must read back the same.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/sealed_model.h"
#include "tests/support/temporary_folder.h"
#include "weft/base/error.h"
#include "weft/data/formats/cifar.h"
#include "weft/data/formats/idx.h"
#include "weft/data/formats/labelled.h"
#include "weft/data/formats/pairs.h"
#include "weft/data/formats/table_encoding.h"
#include "weft/data/formats/text.h"
#include "weft/data/packed/index.h"
#include "weft/data/packed/manifest.h"
#include "weft/data/packed/record.h"
#include "weft/data/pictures/image.h"
#include "weft/data/pictures/mask.h"
#include "weft/data/texts/csv_reader.h"
#include "weft/engine/engine.h"
#include "weft/engine/model_file.h"
#include "weft/graph/symbolic_text.h"
#include "weft/graph/text.h"
#include "weft/library/library.h"
#include "weft/onnx/file/model_file.h"
#include "weft/onnx/lower/lower.h"
#include "weft/ops/all.h"
#include "weft/run/checkpoint/manifest.h"
#include "weft/run/run_directory.h"
#include "weft/run/summary.h"
#include "weft/spec/recipe.h"
#include "weft/tensor/npy.h"
#include "weft/tensor/safetensors.h"

namespace weft::fuzz {

using Input = std::span<const uint8_t>;

inline std::string_view as_text(Input input) { return {reinterpret_cast<const char*>(input.data()), input.size()}; }

/// Bytes under a path, without a file system.
class MemoryFile {
 public:
  explicit MemoryFile(Input input) : descriptor_(memfd_create("input", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || write(descriptor_, input.data(), input.size()) != static_cast<ssize_t>(input.size()))
      std::abort();
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

inline void require(bool holds) {
  if (!holds) std::abort();
}

inline void idx(Input input) { data::read_idx(MemoryFile(input).path()); }

inline void cifar10(Input input) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "test_batch.bin", std::ios::binary) << as_text(input);
  data::read_cifar10(folder.path(), data::Split::test);
}

inline void csv(Input input) {
  const MemoryFile file(input);
  const data::CsvFile table(file.path(), {});
  std::vector<int64_t> rows(static_cast<size_t>(table.rows()));
  for (size_t row = 0; row < rows.size(); ++row) rows[row] = static_cast<int64_t>(row);
  const data::TableEncoding encoding = data::TableEncoding::learn(table, rows, {});
  const std::string json = encoding.to_json();
  require(data::TableEncoding::from_json(json).to_json() == json);
  const std::vector<int64_t> positions = encoding.match(table);
  std::vector<float> cells(static_cast<size_t>(encoding.cells())), numbers(static_cast<size_t>(encoding.width()));
  for (const int64_t row : rows) {
    encoding.read(table, row, positions, cells.data());
    encoding.expand(cells.data(), numbers.data());
  }
}

inline void text(Input input) {
  const data::Vocabulary vocabulary = data::Vocabulary::learn(as_text(input), "input");
  require(data::Vocabulary::from_json(vocabulary.to_json()).characters() == vocabulary.characters());
  vocabulary.encode(as_text(input), "input");
}

/// Opens the bytes as a data set without a test part, reads all of it, and its encoding back.
template <typename Open>
inline std::string read_data(const std::string& kind, Input input, Open open) {
  const MemoryFile file(input);
  const data::DataSpec spec{.kind = kind, .argument = file.path(), .options = {{"split", "0"}}};
  const auto dataset = open(spec, data::Split::train, "");
  std::vector<uint8_t> sample(static_cast<size_t>(dataset->sample_bytes())),
      target(static_cast<size_t>(dataset->target_bytes()));
  for (int64_t index = 0; index < dataset->size(); ++index) {
    dataset->get({.index = index}, sample);
    dataset->get_target({.index = index}, target);
  }
  return dataset->info().encoding;
}

inline void pairs(Input input) {
  const std::string encoding = read_data("pairs", input, data::open_pairs);
  require(data::PairEncoding::from_json(encoding).to_json() == encoding);
}

inline void labelled(Input input) {
  const std::string encoding = read_data("labelled", input, data::open_labelled);
  require(data::LabelledEncoding::from_json(encoding).to_json() == encoding);
}

inline void mask(Input input) { data::resize_mask(data::read_mask(MemoryFile(input).path()), 5, 7); }

inline void image(Input input) {
  const MemoryFile file(input);
  data::read_image(file.path());
  data::resize_shorter(data::read_image(file.path(), 32), 32);
}

inline void safetensors(Input input) { read_safetensors(MemoryFile(input).path()); }

inline void recipe(Input input) {
  spec::RunSpec spec, again;
  spec::apply_recipe(spec, as_text(input), "input");
  spec::resolve(spec);
  const std::string printed = spec::print_recipe(spec);
  spec::apply_recipe(again, printed, "printed");
  require(spec::print_recipe(again) == printed);
}

inline void graph(Input input) {
  const OpRegistry registry = ops::make_registry();
  const Graph read = parse_graph(as_text(input), registry);
  for (const Value& value : read.values()) {
    const int64_t elements = storage_elements(value.type.shape, value.type.layout);
    require(elements >= value.type.elements() && elements <= kMostElements);
    require(value.type.bytes() == byte_size(value.type.dtype, elements));
  }
  const std::string printed = print_graph(read);
  require(print_graph(parse_graph(printed, registry)) == printed);
}

inline void symbolic_graph(Input input) {
  const OpRegistry registry = ops::make_registry();
  const SymbolicGraph read = parse_symbolic_graph(as_text(input), registry);
  const std::string printed = print_symbolic_graph(read);
  require(print_symbolic_graph(parse_symbolic_graph(printed, registry)) == printed);
  SymbolBindings bindings;
  for (const std::string& symbol : read.symbols()) bindings[symbol] = 2;
  bind_symbols(read, bindings);
}

inline void manifest(Input input) {
  const std::string printed = run::print_manifest(run::parse_manifest(as_text(input), "input"));
  require(run::print_manifest(run::parse_manifest(printed, "printed")) == printed);
}

inline void run_files(Input input) {
  run::parse_summary(as_text(input));
  const std::string printed = spec::print_data_description(spec::parse_data_description(as_text(input), "input"));
  require(spec::print_data_description(spec::parse_data_description(printed, "printed")) == printed);
}

inline void packed_manifest(Input input) {
  const std::string printed = data::print_packed_manifest(data::parse_packed_manifest(as_text(input), "input"));
  require(data::print_packed_manifest(data::parse_packed_manifest(printed, "printed")) == printed);
}

/// With the checksum put right, without which nothing but its refusal would be seen.
inline void packed_index(Input input) {
  std::vector<uint8_t> bytes(input.begin(), input.end());
  if (bytes.size() >= 32)
    data::write_u64(bytes.data() + 24, data::checksum_of(Input(bytes).first(24), Input(bytes).subspan(32)));
  const data::PackedIndex index(bytes, "input", 4);
  data::PackedIndexWriter writer;
  for (int64_t number = 0; number < index.size(); ++number) writer.add(index[number]);
  const std::vector<uint8_t> written = writer.finish();
  const data::PackedIndex again(written, "again", 4);
  for (int64_t number = 0; number < index.size(); ++number) require(again[number].name == index[number].name);
}

inline void packed_record(Input input) {
  const data::RecordView record =
      data::read_record(input, input.size() >= 24 ? data::read_u64(input.data() + 16) : 0, false);
  std::vector<uint8_t> bytes(16);
  if (record.sample_storage == data::Storage::picture)
    data::decode_image("input", record.sample, 32);
  else
    data::expand(record.sample_storage, record.sample, std::span(bytes).first(16));
  if (!record.target.empty()) data::expand(record.target_storage, record.target, std::span(bytes).first(4));
}

struct Target {
  const char* name;
  void (*run)(Input);
};
inline void npy(Input input) { parse_npy(as_text(input), "fuzzed"); }

/// Read, and lowered for small inputs; nothing is compiled or run but what the host folds.
inline void onnx_model(Input input) {
  static const OpRegistry registry = ops::make_registry();
  const onnx::LowerableModel model(onnx::parse_model(as_text(input), "fuzzed", {}), onnx::standard_operators(),
                                   registry,
                                   [](const NodeSignature&, const std::vector<Tensor>&) { return std::nullopt; });
  onnx::LowerRequest request;
  for (const onnx::ValueInfo& info : model.model().graph.inputs) {
    std::vector<int64_t> shape;
    if (info.shape && info.shape->size() <= 6)
      for (const onnx::Dimension& dimension : *info.shape)
        shape.push_back(std::min<int64_t>(dimension.size.value_or(2), 8));
    const TensorType type{info.dtype.value_or(DType::f32), Shape(shape), {}};
    if (has_bounded_size(type)) request.live[info.name] = type;
  }
  try {
    model.lower(request);
  } catch (const onnx::NeedsValue&) {  // numbers of an input decide shapes: a session would know them
  }
}

/// A file of `weft compile`, with its checksums put right, without which nothing but their refusal would be seen. What
/// is read is made ready to run, but no plan.
inline void deployed_model(Input input) {
  static const Library library = standard_library();
  static const std::unique_ptr<Device> device = library.device.make({.threads = 1, .kernels = library.kernels});
  const auto bytes = std::make_shared<const std::vector<uint8_t>>(sealed_model(input));
  const engine::DeployedModel model = engine::parse_model(*bytes, bytes, "fuzzed");
  const engine::Engine engine(model, library.ops, *device, {.precision = DType::f32});
  for (size_t index = 0; index < engine.model().inputs.size(); ++index)
    engine.input_type(index, engine.batches().empty() ? 1 : engine.batches()[0]);
}

inline constexpr Target kTargets[] = {{"idx", idx},
                                      {"npy", npy},
                                      {"onnx_model", onnx_model},
                                      {"deployed_model", deployed_model},
                                      {"cifar10", cifar10},
                                      {"csv", csv},
                                      {"text", text},
                                      {"image", image},
                                      {"safetensors", safetensors},
                                      {"recipe", recipe},
                                      {"graph", graph},
                                      {"symbolic_graph", symbolic_graph},
                                      {"manifest", manifest},
                                      {"run_files", run_files},
                                      {"pairs", pairs},
                                      {"labelled", labelled},
                                      {"mask", mask},
                                      {"packed_manifest", packed_manifest},
                                      {"packed_index", packed_index},
                                      {"packed_record", packed_record}};

/// True where the bytes are whole, false where they are refused.
inline bool accepts(const Target& target, Input input) {
  try {
    target.run(input);
    return true;
  } catch (const Error& error) {
    require(error.kind() != ErrorKind::internal);
    return false;
  }
}

}  // namespace weft::fuzz
