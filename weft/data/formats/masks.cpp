#include "weft/data/formats/masks.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <system_error>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/data/dataset/class_names.h"
#include "weft/data/dataset/test_split.h"
#include "weft/data/formats/picture_options.h"
#include "weft/data/pictures/image.h"
#include "weft/data/pictures/mask.h"
#include "weft/data/pictures/picture_cache.h"
#include "weft/data/pictures/picture_files.h"
#include "weft/data/texts/text_file.h"
#include "weft/data/texts/utf8.h"

namespace weft::data {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Pair {
  fs::path picture, mask;
};

/// What is learned from the training masks, or known from them.
struct Encoding {
  int64_t channels, height, width, classes, ignore;
  std::vector<std::string> names;
  bool exact = false;
};

class MaskedPictures : public Dataset {
 public:
  MaskedPictures(DatasetInfo info, std::vector<Pair> pairs, int64_t ignore, int64_t cache_bytes, int64_t disk_bytes)
      : Dataset(std::move(info)),
        pairs_(std::move(pairs)),
        ignore_(ignore),
        pictures_(size(), of_pictures(cache_bytes), of_pictures(disk_bytes)),
        masks_(size(), cache_bytes - of_pictures(cache_bytes), disk_bytes - of_pictures(disk_bytes)) {}

  int64_t size() const override { return static_cast<int64_t>(pairs_.size()); }
  void get(const SampleKey& key, std::span<uint8_t> destination) const override {
    const auto image = pictures_.get(key.index, [&] { return read_fitted(pair(key).picture, info()); });
    std::copy(image->pixels.begin(), image->pixels.end(), destination.begin());
  }
  void get_target(const SampleKey& key, std::span<uint8_t> destination) const override {
    const auto mask = masks_.get(key.index, [&] {
      return resize_mask(read_mask(pair(key).mask), info().target_shape[0], info().target_shape[1]);
    });
    auto* label = reinterpret_cast<int32_t*>(destination.data());
    for (const uint8_t value : mask->pixels) {
      if (value != ignore_ && value >= info().classes)
        fail(ErrorKind::data,
             "[masks] '{}' has the value {}, but there are {} classes, counted from 0; give classes={} or more, or "
             "ignore={} where such pixels do not count",
             pair(key).mask.string(), value, info().classes, value + 1, value);
      *label++ = value == ignore_ ? kIgnoredTarget : value;
    }
  }
  int64_t cache_bytes_to_come() const override {
    return pictures_.bytes_to_come(picture_bytes()) + masks_.bytes_to_come(mask_bytes());
  }
  int64_t uncached_bytes() const override {
    return pictures_.bytes_left_out(picture_bytes()) + masks_.bytes_left_out(mask_bytes());
  }
  void limit_cache(int64_t bytes) override {
    pictures_.set_limit_bytes(std::min(pictures_.limit_bytes(), of_pictures(bytes)));
    masks_.set_limit_bytes(std::min(masks_.limit_bytes(), bytes - of_pictures(bytes)));
  }
  void will_need(int64_t index) const override {
    if (!pictures_.keeps(index)) read_ahead(pair({index, 0}).picture);
    if (!masks_.keeps(index)) read_ahead(pair({index, 0}).mask);
  }
  std::string sample_name(int64_t index) const override { return pair({index, 0}).picture.filename().string(); }

 private:
  /// The share of the pictures in what both take.
  int64_t of_pictures(int64_t bytes) const {
    const int64_t channels = info().sample_shape[0];
    return bytes / (channels + 1) * channels;
  }
  int64_t picture_bytes() const { return pictures_.estimate_bytes(sample_bytes()); }
  int64_t mask_bytes() const { return masks_.estimate_bytes(info().target_shape.elements()); }
  const Pair& pair(const SampleKey& key) const { return pairs_[static_cast<size_t>(key.index)]; }

  std::vector<Pair> pairs_;
  int64_t ignore_;
  PictureCache pictures_, masks_;
};

SpecOptions mask_options(const DataSpec& spec) {
  return SpecOptions(
      spec, {"height", "width", "channels", kDecodeOption, "classes", "ignore", "split", "seed", "cache", "disk"});
}

bool holds_pairs(const fs::path& folder) {
  std::error_code code;
  return fs::is_directory(folder / "images", code) && fs::is_directory(folder / "masks", code);
}

SplitFolders parts_of(const fs::path& directory) {
  return holds_pairs(directory) ? SplitFolders{} : split_folders(directory, holds_pairs);
}

std::vector<Pair> list_pairs(const fs::path& folder, std::string& note) {
  if (!holds_pairs(folder))
    fail(ErrorKind::data, "[masks] '{}' has no folders images and masks; want images/NAME.jpg with masks/NAME.png",
         folder.string());
  std::vector<Pair> pairs;
  int64_t alone = 0;
  std::string example;
  std::error_code code;
  for (const fs::path& picture : sorted_entries("masks", folder / "images")) {
    if (!is_picture(picture)) continue;
    const fs::path mask = folder / "masks" / picture.filename().replace_extension(".png");
    if (fs::exists(mask, code))
      pairs.push_back({picture, mask});
    else if (alone++ == 0)
      example = picture.string();
  }
  if (pairs.empty())
    fail(ErrorKind::data, "[masks] '{}' has no picture with a mask; want images/NAME.jpg with masks/NAME.png",
         folder.string());
  if (alone > 0)
    note = fmt::format("'{}': left out {} picture{} without a mask, such as '{}'", folder.string(), alone,
                       alone == 1 ? "" : "s", example);
  return pairs;
}

/// How often each value stands in all masks.
std::array<int64_t, 256> count_values(const std::vector<Pair>& pairs) {
  std::array<int64_t, 256> counts{};
  for (const Pair& pair : pairs)
    for (const uint8_t value : read_mask(pair.mask).pixels) ++counts[value];
  return counts;
}

std::vector<std::string> read_names(const fs::path& file) {
  std::error_code code;
  std::vector<std::string> names;
  if (!fs::exists(file, code)) return names;
  const std::string text = read_text_file(file);
  require_utf8(text, file.string());
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  return names;
}

/// "background 73.2 %, cat 4.1 %, not counted 0.3 %"
std::string describe_shares(const std::array<int64_t, 256>& counts, const Encoding& encoding) {
  constexpr int64_t kShown = 30;
  int64_t sum = 0;
  for (const int64_t count : counts) sum += count;
  std::string text;
  const auto add = [&](const std::string& name, int64_t count) {
    text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", name,
                        100 * static_cast<double>(count) / static_cast<double>(std::max<int64_t>(1, sum)));
  };
  for (int64_t value = 0; value < std::min(encoding.classes, kShown); ++value) {
    if (value != encoding.ignore) add(class_name(encoding.names, value), counts[static_cast<size_t>(value)]);
  }
  if (const int64_t ignored = counts[static_cast<size_t>(encoding.ignore)]; ignored > 0) add("not counted", ignored);
  return text;
}

Encoding parse_mask_encoding(const std::string& text) {
  constexpr const char* kOther = "[masks] the model was not trained on masks; choose other data";
  try {
    const json root = json::parse(text);
    if (root.value("kind", "") != "masks") fail(ErrorKind::data, "{}", kOther);
    return {root.at("channels"),  root.at("height"), root.at("width"),
            root.at("classes"),   root.at("ignore"), root.at("names").get<std::vector<std::string>>(),
            decodes_exactly(text)};
  } catch (const json::exception&) {
    fail(ErrorKind::data, "{}", kOther);
  }
}

std::string print_encoding(const Encoding& encoding) {
  json root{{"kind", "masks"},         {"channels", encoding.channels}, {"height", encoding.height},
            {"width", encoding.width}, {"classes", encoding.classes},   {"ignore", encoding.ignore},
            {"names", encoding.names}};
  if (encoding.exact) root[kDecodeOption] = "exact";
  return root.dump();
}

/// The classes: as many as the options or names say, or as the masks of both splits show; of those that had to be read,
/// `shares` says what the ones for training hold.
void learn_classes(const SpecOptions& options, const std::vector<Pair>& training, const std::vector<Pair>& others,
                   Encoding& encoding, std::string& shares) {
  if (options.find("classes")) {
    encoding.classes = options.integer("classes", 2, 2, 256);
  } else {
    const std::array<int64_t, 256> counts = count_values(training), apart = count_values(others);
    encoding.classes = static_cast<int64_t>(encoding.names.size());
    for (int64_t value = encoding.classes; value < 256; ++value) {
      const auto at = static_cast<size_t>(value);
      if (value != encoding.ignore && counts[at] + apart[at] > 0) encoding.classes = value + 1;
    }
    shares = describe_shares(counts, encoding);
  }
  if (encoding.classes < 2)
    fail(ErrorKind::data, "[masks] '{}' and the others hold one class only; want at least the values 0 and 1",
         training.front().mask.string());
}

}  // namespace

Image read_fitted(const fs::path& path, const DatasetInfo& info) {
  const int64_t needed = std::max(info.sample_shape[1], info.sample_shape[2]);
  return fit(read_image(path, shortest_decoded(decodes_exactly(info.encoding), needed)), info.sample_shape);
}

bool masks_have_whole(const DataSpec& spec) { return parts_of(spec.argument).train.empty(); }

bool masks_have_test_split(const DataSpec& spec) {
  const SplitFolders parts = parts_of(spec.argument);
  return !parts.test.empty() || TestSplit(mask_options(spec), kDefaultPictureSplit).exists();
}

std::unique_ptr<Dataset> open_masks(const DataSpec& spec, Split split, const std::string& encoding_text) {
  const SpecOptions options = mask_options(spec);
  const bool trained = !encoding_text.empty();
  Encoding encoding =
      trained ? parse_mask_encoding(encoding_text) : Encoding{3, kDefaultPictureSize, kDefaultPictureSize, 0, 255, {}};
  encoding.channels = channels_option(options, encoding.channels);
  encoding.exact = exact_option(options, encoding.exact);
  encoding.height = options.integer("height", encoding.height, 1, kMostPictureSide);
  encoding.width = options.integer("width", encoding.width, 1, kMostPictureSide);
  encoding.ignore = options.integer("ignore", encoding.ignore, 0, 255);
  const int64_t cache_bytes = cache_option(options, split);
  const TestSplit test(options, kDefaultPictureSplit);
  std::error_code code;
  if (spec.argument.empty()) fail(ErrorKind::usage, "[masks] wants a folder: write masks:DIR");
  if (!fs::is_directory(spec.argument, code))
    fail(ErrorKind::io, "[masks] '{}' is no folder{}; check the path", spec.argument,
         code ? ": " + code.message() : "");
  const SplitFolders parts = parts_of(spec.argument);
  const fs::path folder = split == Split::test && !parts.test.empty() ? parts.test
                          : !parts.train.empty()                      ? parts.train
                                                                      : fs::path(spec.argument);
  DatasetInfo info;
  std::vector<Pair> pairs = list_pairs(folder, info.note), others;
  if (parts.test.empty()) {
    std::vector<bool> members = test.members(std::vector<int32_t>(pairs.size(), 0), split, folder.string(), "pictures");
    others = pairs;
    keep_members(pairs, members);
    members.flip();
    keep_members(others, members);
  }
  if (!trained) {
    std::string ignored_note;
    if (!parts.test.empty()) others = list_pairs(folder == parts.test ? parts.train : parts.test, ignored_note);
    encoding.names = read_names(fs::path(spec.argument) / "classes.txt");
    std::string shares;
    learn_classes(options, pairs, others, encoding, shares);
    if (!shares.empty()) info.facts.emplace_back("pixels", shares);
    if (!encoding.names.empty() && static_cast<int64_t>(encoding.names.size()) != encoding.classes)
      fail(ErrorKind::data, "[masks] '{}' names {} classes, the masks have {}; mend it, or say classes={}",
           (fs::path(spec.argument) / "classes.txt").string(), encoding.names.size(), encoding.classes,
           encoding.names.size());
  }
  info.name = name_of_folder(spec.argument);
  info.sample_shape = Shape{encoding.channels, encoding.height, encoding.width};
  info.target_shape = Shape{encoding.height, encoding.width};
  info.classes = encoding.classes;
  info.class_names = encoding.names;
  info.task = "segmentation";
  info.decoded = true;
  info.encoding = print_encoding(encoding);
  return std::make_unique<MaskedPictures>(std::move(info), std::move(pairs), encoding.ignore, cache_bytes,
                                          disk_option(options, split));
}

}  // namespace weft::data
