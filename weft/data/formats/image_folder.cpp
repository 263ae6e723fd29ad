#include "weft/data/formats/image_folder.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/data/image.h"
#include "weft/data/picture_cache.h"
#include "weft/data/picture_files.h"
#include "weft/data/stratified_split.h"
#include "weft/data/utf8.h"

namespace weft::data {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kDefaultSplit = 0.2;
constexpr int64_t kDefaultSize = 128, kMostPixels = 4096;

struct Picture {
  fs::path path;
  int32_t label = 0;
};

class ImageFolder : public Dataset {
 public:
  ImageFolder(DatasetInfo info, std::vector<Picture> pictures, int64_t shorter_side, int64_t cache_bytes)
      : Dataset(std::move(info)),
        pictures_(std::move(pictures)),
        shorter_side_(shorter_side),
        cache_(static_cast<int64_t>(pictures_.size()), cache_bytes) {}

  int64_t size() const override { return static_cast<int64_t>(pictures_.size()); }
  void get(const SampleKey& key, std::span<uint8_t> destination) const override {
    const Shape& shape = info().sample_shape;
    copy_middle(*picture(key.index), shape[1], shape[2], destination);
  }
  void get_target(const SampleKey& key, std::span<uint8_t> destination) const override {
    std::memcpy(destination.data(), &pictures_[static_cast<size_t>(key.index)].label, sizeof(int32_t));
  }
  std::shared_ptr<const Image> picture(int64_t index) const override {
    return cache_.get(index, [&] {
      return resize_shorter(
          with_channels(read_image(pictures_[static_cast<size_t>(index)].path, shorter_side_), info().sample_shape[0]),
          shorter_side_);
    });
  }
  int64_t cache_bytes_to_come() const override {
    if (cache_.limit_bytes() == 0) return 0;
    const int64_t looked_at = std::min<int64_t>(size(), 64);  // pictures differ in how long they are
    int64_t bytes = 0;
    for (int64_t at = 0; at < looked_at; ++at)
      bytes += static_cast<int64_t>(picture(at * size() / looked_at)->pixels.size());
    const int64_t all = std::min(cache_.limit_bytes(), bytes * size() / looked_at);
    return std::max<int64_t>(0, all - cache_.bytes());
  }

 private:
  std::vector<Picture> pictures_;
  int64_t shorter_side_;
  PictureCache cache_;
};

SpecOptions options_of(const DataSpec& spec) {
  return SpecOptions(spec, {"size", "resize", "channels", "split", "seed", "cache"});
}

struct Skipped {
  int64_t count = 0;
  std::string example;
};

/// All pictures of a class, in its folder and those below.
void collect(const fs::path& folder, int32_t label, std::vector<Picture>& pictures, Skipped& skipped) {
  std::error_code code;
  for (const fs::path& entry : sorted_entries("images", folder)) {
    if (fs::is_directory(entry, code) && !fs::is_symlink(entry, code)) {
      collect(entry, label, pictures, skipped);
    } else if (is_picture(entry)) {
      pictures.push_back({entry, label});
    } else if (skipped.count++ == 0) {
      skipped.example = entry.string();
    }
  }
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders = sorted_entries("images", folder);
  std::error_code code;
  std::erase_if(folders, [&](const fs::path& entry) { return !fs::is_directory(entry, code); });
  return folders;
}

/// DIR/train where there is one, with the test folder beside it; empty paths where there is none.
struct Parts {
  fs::path train, test;
};
Parts parts_of(const fs::path& directory) {
  Parts parts;
  std::error_code code;
  if (fs::is_directory(directory / "train", code)) parts.train = directory / "train";
  for (const char* name : {"test", "val", "valid", "validation"})
    if (parts.test.empty() && fs::is_directory(directory / name, code)) parts.test = directory / name;
  if (parts.train.empty()) parts.test.clear();  // a class may be called so
  return parts;
}

/// A folder's name as text that JSON can hold.
std::string class_name(const fs::path& folder) { return printable_utf8(folder.filename().string()); }

struct Listing {
  std::vector<std::string> classes;
  std::vector<Picture> pictures;
  Skipped skipped;
};

Listing list_pictures(const fs::path& directory) {
  Listing listing;
  const std::vector<fs::path> folders = folders_in(directory);
  if (folders.empty())
    fail(ErrorKind::data, "[images] '{}' has no folders; put the pictures of each class into a folder with its name",
         directory.string());
  for (const fs::path& folder : folders) {
    const size_t before = listing.pictures.size();
    collect(folder, static_cast<int32_t>(listing.classes.size()), listing.pictures, listing.skipped);
    listing.classes.push_back(class_name(folder));
    if (listing.pictures.size() == before && folders.size() > 1)
      fail(ErrorKind::data, "[images] the class folder '{}' holds no JPEG or PNG images; remove it or fill it",
           folder.string());
  }
  if (listing.pictures.empty())
    fail(ErrorKind::data, "[images] '{}' holds no JPEG or PNG images; want DIR/CLASS/PICTURE.jpg", directory.string());
  return listing;
}

json parse_encoding(const std::string& encoding) {
  if (encoding.empty()) return json();
  json root = json::parse(encoding, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object() || root.value("kind", std::string()) != "images" || !root.contains("classes"))
    fail(ErrorKind::data, "[images] the model was not trained on a folder of images; choose other data");
  return root;
}

/// Numbers classes as the trained model does.
void relabel(Listing& listing, const std::vector<std::string>& trained) {
  std::vector<int32_t> numbers;
  for (const std::string& name : listing.classes) {
    const auto found = std::find(trained.begin(), trained.end(), name);
    if (found == trained.end())
      fail(ErrorKind::data, "[images] the class folder '{}' is none of the {} classes of the training data{}", name,
           trained.size(), suggestion(name, trained));
    numbers.push_back(static_cast<int32_t>(found - trained.begin()));
  }
  for (Picture& picture : listing.pictures) picture.label = numbers[static_cast<size_t>(picture.label)];
  listing.classes = trained;
}

}  // namespace

Image to_sample(const Image& image, const DatasetInfo& info) {
  const json learned = parse_encoding(info.encoding);
  if (!learned.is_object()) return fit(image, info.sample_shape);
  const int64_t channels = info.sample_shape[0], height = info.sample_shape[1], width = info.sample_shape[2];
  const int64_t shorter = learned.value("resize", std::max(height, width));
  Image sample{channels, height, width, {}};
  sample.pixels.resize(static_cast<size_t>(channels * height * width));
  copy_middle(resize_shorter(with_channels(image, channels), shorter), height, width, sample.pixels);
  return sample;
}

Image read_sample(const std::filesystem::path& path, const DatasetInfo& info) {
  const json learned = parse_encoding(info.encoding);
  return to_sample(read_image(path, learned.is_object() ? learned.value("resize", int64_t{0}) : 0), info);
}

bool image_folder_has_whole(const DataSpec& spec) { return parts_of(spec.argument).train.empty(); }

bool image_folder_has_test_split(const DataSpec& spec) {
  const Parts parts = parts_of(spec.argument);
  return !parts.test.empty() || options_of(spec).fraction("split", kDefaultSplit) > 0;
}

std::unique_ptr<Dataset> open_image_folder(const DataSpec& spec, Split split, const std::string& encoding) {
  const SpecOptions options = options_of(spec);
  const json learned = parse_encoding(encoding);
  const auto usual = [&](const char* key, int64_t fallback) {
    return learned.is_object() ? learned.value(key, fallback) : fallback;
  };
  const int64_t size = options.integer("size", usual("size", kDefaultSize), 1, kMostPixels);
  const int64_t channels = options.integer("channels", usual("channels", 3), 1, 3);
  const int64_t shorter = options.integer("resize", usual("resize", (size * 8 + 6) / 7), size, kMostPixels);
  const int64_t cache_bytes = options.integer("cache", 1024, 0, 1 << 20) * 1'000'000;
  const double fraction = options.fraction("split", kDefaultSplit);
  if (channels == 2) fail(ErrorKind::usage, "[images] channels=2: wants 3 (RGB) or 1 (grey)");
  std::error_code code;
  if (spec.argument.empty()) fail(ErrorKind::usage, "[images] wants a folder: write images:DIR");
  if (!fs::is_directory(spec.argument, code))
    fail(ErrorKind::io, "[images] '{}' is no folder{}; check the path", spec.argument,
         code ? ": " + code.message() : "");
  const Parts parts = parts_of(spec.argument);
  const fs::path directory = split == Split::test && !parts.test.empty() ? parts.test
                             : !parts.train.empty()                      ? parts.train
                                                                         : fs::path(spec.argument);
  Listing listing = list_pictures(directory);
  if (parts.test.empty() && split != Split::all && fraction > 0) {
    std::vector<int32_t> strata;
    for (const Picture& picture : listing.pictures) strata.push_back(picture.label);
    const auto seed = static_cast<uint64_t>(options.integer("seed", 0, 0, INT64_MAX));
    const std::vector<bool> is_test = stratified_split(strata, fraction, seed);
    size_t at = 0;
    std::erase_if(listing.pictures, [&](const Picture&) { return is_test[at++] != (split == Split::test); });
    if (listing.pictures.empty())
      fail(ErrorKind::data,
           "[images] '{}' has too few pictures to set {} of each class aside; add more, or say split=0",
           directory.string(), fraction);
  }
  if (learned.is_object()) relabel(listing, learned["classes"].get<std::vector<std::string>>());
  if (listing.classes.size() < 2)
    fail(ErrorKind::data, "[images] '{}' has one class folder only, '{}'; want at least two classes",
         directory.string(), listing.classes.front());
  DatasetInfo info;
  info.name = class_name(fs::path(spec.argument).lexically_normal().has_filename()
                             ? fs::path(spec.argument).lexically_normal()
                             : fs::path(spec.argument).lexically_normal().parent_path());
  info.sample_shape = Shape{channels, size, size};
  info.classes = static_cast<int64_t>(listing.classes.size());
  info.class_names = listing.classes;
  info.decoded = true;
  if (listing.skipped.count > 0)
    info.note = fmt::format("'{}': left out {} file{} that {} no JPEG or PNG image{}, such as '{}'", directory.string(),
                            listing.skipped.count, listing.skipped.count == 1 ? "" : "s",
                            listing.skipped.count == 1 ? "is" : "are", listing.skipped.count == 1 ? "" : "s",
                            listing.skipped.example);
  info.encoding =
      json{
          {"kind", "images"}, {"size", size}, {"resize", shorter}, {"channels", channels}, {"classes", listing.classes}}
          .dump();
  return std::make_unique<ImageFolder>(std::move(info), std::move(listing.pictures), shorter, cache_bytes);
}

}  // namespace weft::data
