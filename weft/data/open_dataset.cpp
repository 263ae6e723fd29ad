#include "weft/data/open_dataset.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/data/data_spec.h"
#include "weft/data/formats/cifar.h"
#include "weft/data/formats/csv.h"
#include "weft/data/formats/idx.h"
#include "weft/data/formats/image_folder.h"
#include "weft/data/formats/text.h"

namespace weft::data {

namespace {

namespace fs = std::filesystem;

constexpr const char* kFashionMnistDirectory = "/usr/share/datasets/fashion-mnist";

/// The file, or the same with ".gz"; empty where there is neither.
fs::path plain_or_gzip(const fs::path& path) {
  const fs::path compressed = path.string() + ".gz";
  std::error_code code;
  return fs::exists(path, code) ? path : fs::exists(compressed, code) ? compressed : fs::path();
}

std::unique_ptr<Dataset> open_fashion_mnist(const std::string& argument, Split split) {
  const fs::path directory = argument.empty() ? kFashionMnistDirectory : argument;
  const auto find = [&](const char* kind) {
    const std::string name = fmt::format("{}-{}-ubyte", split == Split::train ? "train" : "t10k", kind);
    const fs::path path = plain_or_gzip(directory / name);
    if (path.empty())
      fail(
          ErrorKind::io,
          "[fashion-mnist] no file '{}' nor '{}.gz'; install Debian's package dataset-fashion-mnist, or give a folder: "
          "fashion-mnist:DIR",
          (directory / name).string(), name);
    return path;
  };
  DatasetInfo info{
      "fashion-mnist",
      {},
      10,
      {"T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"}};
  const fs::path images = find("images-idx3"), labels = find("labels-idx1");
  return read_idx_dataset(std::move(info), images, labels);
}

std::unique_ptr<Dataset> open_idx(const std::string& argument, Split split) {
  std::vector<fs::path> paths;
  for (size_t begin = 0; begin <= argument.size();) {
    const size_t end = std::min(argument.find(',', begin), argument.size());
    paths.emplace_back(argument.substr(begin, end - begin));
    begin = end + 1;
  }
  if ((paths.size() != 2 && paths.size() != 4) || std::find(paths.begin(), paths.end(), fs::path()) != paths.end())
    fail(ErrorKind::usage,
         "[idx] 'idx:{}' does not name 2 or 4 files; write idx:IMAGES,LABELS[,TEST_IMAGES,TEST_LABELS]", argument);
  if (split == Split::test && paths.size() == 2)
    fail(ErrorKind::usage, "[idx] 'idx:{}' has no test files; write idx:IMAGES,LABELS,TEST_IMAGES,TEST_LABELS",
         argument);
  for (const fs::path& path : paths) {
    std::error_code code;
    if (fs::exists(path, code)) continue;
    if (code) fail(ErrorKind::io, "[idx] cannot open '{}': {}; check the path", path.string(), code.message());
    fail(ErrorKind::io, "[idx] no file '{}'; check the path", path.string());
  }
  // The training labels say how many classes there are, for the test split too: it may lack some.
  DatasetInfo info{"idx", {}, count_idx_classes(paths[1]), {}};
  const size_t first = split == Split::train ? 0 : 2;
  return read_idx_dataset(std::move(info), paths[first], paths[first + 1]);
}

std::unique_ptr<Dataset> open_cifar10(const std::string& argument, Split split) {
  if (argument.empty())
    fail(ErrorKind::usage, "[cifar10] wants a folder: write cifar10:DIR, where DIR holds data_batch_1.bin");
  return read_cifar10(argument, split);
}

std::string absolute(const std::string& path) {
  return path.empty() ? path : fs::absolute(path).lexically_normal().string();
}

}  // namespace

const std::vector<DatasetKind>& dataset_kinds() {
  static const std::vector<DatasetKind> kinds = {
      {"fashion-mnist", "fashion-mnist[:DIR]", "60,000 + 10,000 grey 28x28 pictures of clothes in 10 classes"},
      {"idx", "idx:IMAGES,LABELS[,TEST_IMAGES,TEST_LABELS]", "IDX files as of MNIST, gzip or not"},
      {"cifar10", "cifar10:DIR", "50,000 + 10,000 colour 32x32 photos in 10 classes, binary version"},
      {"images", "images:DIR[?size=128...]", "a folder of JPEG or PNG pictures per class"},
      {"csv", "csv:FILE[?label=COLUMN&test=FILE...]", "a table: numbers and categories, classes or values to predict"},
      {"text", "text:FILE[?length=128...]", "a text, of which the next character is predicted"}};
  return kinds;
}

std::string dataset_forms() {
  std::vector<std::string> forms;
  for (const DatasetKind& kind : dataset_kinds()) forms.push_back(kind.form);
  return fmt::format("{}", fmt::join(forms, ", "));
}

std::unique_ptr<Dataset> open_dataset(const std::string& text, Split split, const std::string& encoding) {
  const DataSpec spec = parse_data_spec(text);
  if (spec.kind == "fashion-mnist") return open_fashion_mnist(spec.argument, split);
  if (spec.kind == "idx") return open_idx(spec.argument, split);
  if (spec.kind == "cifar10") return open_cifar10(spec.argument, split);
  if (spec.kind == "csv") return open_csv(spec, split, encoding);
  if (spec.kind == "text") return open_text(spec, split, encoding);
  if (spec.kind == "images") return open_image_folder(spec, split, encoding);
  std::vector<std::string> names;
  for (const DatasetKind& known : dataset_kinds()) names.push_back(known.name);
  fail(ErrorKind::usage, "unknown data '{}'{}", text, suggestion(spec.kind, names));
}

bool has_test_split(const std::string& text) {
  const DataSpec spec = parse_data_spec(text);
  if (spec.kind == "idx") return std::count(spec.argument.begin(), spec.argument.end(), ',') != 1;
  if (spec.kind == "csv") return csv_has_test_split(spec);
  if (spec.kind == "text") return text_has_test_split(spec);
  if (spec.kind == "images") return image_folder_has_test_split(spec);
  return true;
}

bool has_whole(const std::string& text) {
  const DataSpec spec = parse_data_spec(text);
  const auto named = [&](const char* option) {
    return std::any_of(spec.options.begin(), spec.options.end(), [&](const auto& o) { return o.first == option; });
  };
  return (spec.kind == "csv" && !named("test")) || spec.kind == "text" ||
         (spec.kind == "images" && image_folder_has_whole(spec));
}

std::string with_absolute_paths(const std::string& text) {
  DataSpec spec = parse_data_spec(text);
  if (text.find(':') == std::string::npos) return text;
  for (auto& [name, value] : spec.options)
    if (name == "test") value = absolute(value);
  if (spec.kind != "idx") {
    spec.argument = absolute(spec.argument);
    return print_data_spec(spec);
  }
  std::string out;
  for (size_t begin = 0; begin <= spec.argument.size();) {
    const size_t end = std::min(spec.argument.find(',', begin), spec.argument.size());
    const std::string path = absolute(spec.argument.substr(begin, end - begin));
    if (path.find(',') != std::string::npos) return text;  // a comma above this directory cannot be written
    out += (begin == 0 ? "idx:" : ",") + path;
    begin = end + 1;
  }
  return out;
}

}  // namespace weft::data
