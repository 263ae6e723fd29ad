#include "weft/data/open_dataset.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/data/dataset/data_spec.h"
#include "weft/data/formats/cifar.h"
#include "weft/data/formats/csv.h"
#include "weft/data/formats/idx.h"
#include "weft/data/formats/image_folder.h"
#include "weft/data/formats/labelled.h"
#include "weft/data/formats/masks.h"
#include "weft/data/formats/pairs.h"
#include "weft/data/formats/text.h"
#include "weft/data/formats/text_images.h"
#include "weft/data/packed/packed.h"

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

std::unique_ptr<Dataset> open_fashion_mnist(const DataSpec& spec, Split split, const std::string&) {
  const fs::path directory = spec.argument.empty() ? kFashionMnistDirectory : spec.argument;
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

std::unique_ptr<Dataset> open_idx(const DataSpec& spec, Split split, const std::string&) {
  const std::string& argument = spec.argument;
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

std::unique_ptr<Dataset> open_cifar10(const DataSpec& spec, Split split, const std::string&) {
  if (spec.argument.empty())
    fail(ErrorKind::usage, "[cifar10] wants a folder: write cifar10:DIR, where DIR holds data_batch_1.bin");
  return read_cifar10(spec.argument, split);
}

std::string absolute(const std::string& path) {
  return path.empty() ? path : fs::absolute(path).lexically_normal().string();
}

DataSpec with_absolute_files(DataSpec spec) {
  for (auto& [name, value] : spec.options)
    if (name == "test") value = absolute(value);
  return with_absolute_argument(std::move(spec));
}

DataSpec with_absolute_idx_files(DataSpec spec) {
  std::string paths;
  for (size_t begin = 0; begin <= spec.argument.size();) {
    const size_t end = std::min(spec.argument.find(',', begin), spec.argument.size());
    const std::string path = absolute(spec.argument.substr(begin, end - begin));
    if (path.find(',') != std::string::npos) return spec;  // a comma above this directory cannot be written
    paths += (begin == 0 ? "" : ",") + path;
    begin = end + 1;
  }
  spec.argument = std::move(paths);
  return spec;
}

bool idx_has_test_split(const DataSpec& spec) {
  return std::count(spec.argument.begin(), spec.argument.end(), ',') != 1;
}

/// No other file holds test data.
bool is_one_file(const DataSpec& spec) {
  return std::none_of(spec.options.begin(), spec.options.end(), [](const auto& o) { return o.first == "test"; });
}

bool always(const DataSpec&) { return true; }

/// Null where there is none of that name.
const DatasetKind* find_kind(const std::vector<DatasetKind>& kinds, const std::string& name) {
  const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return kind.name == name; });
  return found == kinds.end() ? nullptr : &*found;
}

/// For a path that somebody gave without its kind: how to write it. Empty where nothing is there.
std::string kind_of_path(const std::string& text) {
  std::error_code code;
  const fs::path path(text);
  if (fs::is_directory(path, code)) {
    if (fs::exists(path / "data_batch_1.bin", code)) return fmt::format("cifar10:{}", text);
    if (fs::exists(path / "train-images-idx3-ubyte", code) || fs::exists(path / "train-images-idx3-ubyte.gz", code))
      return fmt::format("fashion-mnist:{}", text);
    return fmt::format("images:{} for a folder of pictures by class", text);
  }
  if (!fs::is_regular_file(path, code)) return "";
  const std::string extension = path.extension().string();
  if (extension == ".csv") return fmt::format("'csv:{}?label=COLUMN' for a table", text);
  if (extension == ".tsv")
    return fmt::format("pairs:{} for pairs of texts, or labelled:{} for labelled ones", text, text);
  return fmt::format("text:{} for a text, or 'csv:{}?label=COLUMN' for a table", text, text);
}

}  // namespace

const std::vector<DatasetKind>& standard_dataset_kinds() {
  static const std::vector<DatasetKind> kinds = {
      {"fashion-mnist",
       "fashion-mnist[:DIR]",
       "60,000 + 10,000 grey 28x28 pictures of clothes in 10 classes",
       open_fashion_mnist,
       {},
       {},
       with_absolute_argument},
      {"idx",
       "idx:IMAGES,LABELS[,TEST_IMAGES,TEST_LABELS]",
       "IDX files as of MNIST, gzip or not",
       open_idx,
       idx_has_test_split,
       {},
       with_absolute_idx_files},
      {"cifar10",
       "cifar10:DIR",
       "50,000 + 10,000 colour 32x32 photos in 10 classes, binary version",
       open_cifar10,
       {},
       {},
       with_absolute_argument},
      {"images", "images:DIR[?size=128...]", "a folder of JPEG or PNG pictures per class", open_image_folder,
       image_folder_has_test_split, image_folder_has_whole, with_absolute_files, always},
      {"csv", "csv:FILE[?label=COLUMN&test=FILE...]", "a table: numbers and categories, classes or values to predict",
       open_csv, csv_has_test_split, is_one_file, with_absolute_files},
      {"text", "text:FILE[?length=128...]", "a text, of which the next character is predicted", open_text,
       text_has_test_split, always, with_absolute_files},
      {"labelled", "labelled:FILE[?label=2...]", "LABEL<TAB>TEXT on each line: texts in classes", open_labelled,
       labelled_has_test_split, is_one_file, with_absolute_files},
      {"pairs", "pairs:FILE[?test=FILE...]",
       "SOURCE<TAB>TARGET on each line: what a text becomes, such as its translation", open_pairs,
       pairs_have_test_split, is_one_file, with_absolute_files},
      {"lines", "lines:PATH[?test=PATH...]",
       "pictures of lines of text: PICTURE<TAB>TEXT on each line, or a folder of NAME.png with NAME.gt.txt",
       open_text_images, text_images_have_test_split, is_one_file, with_absolute_files, always},
      {"masks", "masks:DIR[?height=128...]", "DIR/images with a class per pixel in DIR/masks/NAME.png", open_masks,
       masks_have_test_split, masks_have_whole, with_absolute_files, always},
      {"packed",
       "packed:DIR[?max_bad_records=1%...]",
       "training records that `weft pack` has written of any of these",
       [](const DataSpec& spec, Split split, const std::string& encoding) {
         return open_packed(spec, split, encoding);
       },
       packed_has_test_split,
       {},
       with_absolute_argument,
       packed_holds_pictures}};
  return kinds;
}

std::unique_ptr<Dataset> open_dataset(const std::vector<DatasetKind>& kinds, const std::string& text, Split split,
                                      const std::string& encoding) {
  const DataSpec spec = parse_data_spec(text);
  if (const DatasetKind* kind = find_kind(kinds, spec.kind)) return kind->open(spec, split, encoding);
  std::vector<std::string> names;
  for (const DatasetKind& known : kinds) names.push_back(known.name);
  if (const std::string kind = kind_of_path(text); !kind.empty())
    fail(ErrorKind::usage, "unknown data '{}'; it is a path, so write {}", text, kind);
  fail(ErrorKind::usage, "unknown data '{}'{}", text, suggestion(spec.kind, names));
}

std::unique_ptr<Dataset> open_dataset(const std::string& text, Split split, const std::string& encoding) {
  return open_dataset(standard_dataset_kinds(), text, split, encoding);
}

bool has_test_split(const std::vector<DatasetKind>& kinds, const std::string& text) {
  const DataSpec spec = parse_data_spec(text);
  const DatasetKind* kind = find_kind(kinds, spec.kind);
  return kind == nullptr || !kind->has_test_split || kind->has_test_split(spec);
}

bool has_whole(const std::vector<DatasetKind>& kinds, const std::string& text) {
  const DataSpec spec = parse_data_spec(text);
  const DatasetKind* kind = find_kind(kinds, spec.kind);
  return kind != nullptr && kind->has_whole && kind->has_whole(spec);
}

bool decodes_pictures(const std::vector<DatasetKind>& kinds, const std::string& text) {
  const DataSpec spec = parse_data_spec(text);
  const DatasetKind* kind = find_kind(kinds, spec.kind);
  return kind != nullptr && kind->decodes_pictures && kind->decodes_pictures(spec);
}

std::string with_absolute_paths(const std::vector<DatasetKind>& kinds, const std::string& text) {
  const DataSpec spec = parse_data_spec(text);
  const DatasetKind* kind = find_kind(kinds, spec.kind);
  const bool names_files = kind != nullptr && kind->with_absolute_paths && text.find(':') != std::string::npos;
  return names_files ? print_data_spec(kind->with_absolute_paths(spec)) : text;
}

DataSpec with_absolute_argument(DataSpec spec) {
  spec.argument = absolute(spec.argument);
  return spec;
}

std::string dataset_forms(const std::vector<DatasetKind>& kinds) {
  std::vector<std::string> forms;
  for (const DatasetKind& kind : kinds) forms.push_back(kind.form);
  return fmt::format("{}", fmt::join(forms, ", "));
}

}  // namespace weft::data
