#include "weft/data/formats/image_folder.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/names.h"
#include "weft/base/parallel.h"
#include "weft/data/dataset/damage_log.h"
#include "weft/data/dataset/test_split.h"
#include "weft/data/formats/picture_options.h"
#include "weft/data/pictures/image.h"
#include "weft/data/pictures/picture_cache.h"
#include "weft/data/pictures/picture_files.h"
#include "weft/data/texts/utf8.h"

namespace weft::data {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Picture {
  fs::path path;
  int32_t label = 0;
};

/// Whether the picture itself is damaged or missing. What else goes wrong (too many open files, a file server that is
/// away for a moment) may be over at the next try: which pictures a training sees must not depend on that.
bool is_damage(const Error& error, const fs::path& file) {
  if (error.kind() != ErrorKind::io) return error.kind() == ErrorKind::data;
  std::error_code code;
  return fs::status(file, code).type() == fs::file_type::not_found && fs::is_directory(file.parent_path(), code);
}

class ImageFolder : public Dataset {
 public:
  ImageFolder(DatasetInfo info, fs::path folder, std::vector<Picture> pictures, const PictureSettings& settings,
              std::unique_ptr<DamageLog> damage, bool replaces_damaged, int64_t cache_bytes, int64_t disk_bytes)
      : Dataset(std::move(info)),
        folder_(std::move(folder)),
        pictures_(std::move(pictures)),
        shorter_side_(settings.resize),
        shortest_decoded_(shortest_decoded(settings.exact, settings.resize)),
        damage_(std::move(damage)),
        next_of_class_(damage_ && replaces_damaged ? next_of_class(pictures_) : std::vector<int64_t>()),
        cache_(static_cast<int64_t>(pictures_.size()), cache_bytes, disk_bytes) {}

  int64_t size() const override { return static_cast<int64_t>(pictures_.size()); }
  void get(const SampleKey& key, std::span<uint8_t> destination) const override {
    const Shape& shape = info().sample_shape;
    copy_middle(*picture(key.index), shape[1], shape[2], destination);
  }
  void get_target(const SampleKey& key, std::span<uint8_t> destination) const override {
    std::memcpy(destination.data(), &pictures_[static_cast<size_t>(key.index)].label, sizeof(int32_t));
  }
  /// Where damaged ones are passed over, the next of the same class stands for each: the label stays true.
  std::shared_ptr<const Image> picture(int64_t index) const override {
    if (next_of_class_.empty()) return read(index);
    int64_t at = index;
    do {
      if (!damage_->has(at)) try {
          return read(at);
        } catch (const Error& error) {
          if (!is_damage(error, pictures_[static_cast<size_t>(at)].path)) throw;
          damage_->add(at, error.what());
        }
      at = next_of_class_[static_cast<size_t>(at)];
    } while (at != index);
    fail(ErrorKind::data, "[images] every picture of the class of '{}' is damaged; copy the pictures again",
         sample_name(index));
  }
  int64_t cache_bytes_to_come() const override { return cache_.bytes_to_come(decoded_bytes()); }
  int64_t uncached_bytes() const override { return cache_.bytes_left_out(decoded_bytes()); }
  void limit_cache(int64_t bytes) override { cache_.set_limit_bytes(std::min(cache_.limit_bytes(), bytes)); }
  void will_need(int64_t index) const override {
    if (!cache_.keeps(index)) read_ahead(pictures_[static_cast<size_t>(index)].path);
  }
  std::string sample_name(int64_t index) const override {
    return pictures_[static_cast<size_t>(index)].path.lexically_relative(folder_).string();
  }
  fs::path picture_file(int64_t index) const override { return pictures_[static_cast<size_t>(index)].path; }
  int64_t damaged_samples() const override { return damage_ ? damage_->count() : 0; }
  std::vector<DamagedSample> list_damaged() const override {
    return damage_ ? damage_->all() : std::vector<DamagedSample>();
  }
  std::string_view stand_in() const override { return "the next picture of the same class"; }

 private:
  /// For each picture the number of the next one with its label, from the last on to the first.
  static std::vector<int64_t> next_of_class(const std::vector<Picture>& pictures) {
    std::vector<int64_t> next(pictures.size());
    std::map<int32_t, int64_t> following;
    for (int pass = 0; pass < 2; ++pass)
      for (size_t at = pictures.size(); at-- > 0;) {
        const auto [found, is_last] = following.try_emplace(pictures[at].label, static_cast<int64_t>(at));
        next[at] = found->second;
        found->second = static_cast<int64_t>(at);
      }
    return next;
  }

  std::shared_ptr<const Image> read(int64_t index) const {
    return cache_.get(index, [&] {
      const Image image = read_image(pictures_[static_cast<size_t>(index)].path, shortest_decoded_);
      return resize_shorter(with_channels(image, info().sample_shape[0]), shorter_side_);
    });
  }
  int64_t decoded_bytes() const {
    return cache_.estimate_bytes([this](int64_t index) { return picture(index); });
  }

  fs::path folder_;
  std::vector<Picture> pictures_;
  int64_t shorter_side_, shortest_decoded_;
  std::unique_ptr<DamageLog> damage_;   // null: a damaged picture is an error
  std::vector<int64_t> next_of_class_;  // empty: nothing is replaced
  PictureCache cache_;
};

SpecOptions folder_options(const DataSpec& spec) {
  return SpecOptions(spec,
                     {"size", "resize", "channels", kDecodeOption, kDamageOption, "split", "seed", "cache", "disk"});
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

bool is_folder(const fs::path& path) {
  std::error_code code;
  return fs::is_directory(path, code);
}

/// A folder's name as text that JSON can hold.
std::string class_of_folder(const fs::path& folder) { return printable_utf8(folder.filename().string()); }

struct Listing {
  std::vector<std::string> classes;
  std::vector<Picture> pictures;
  Skipped skipped;
};

/// Whether `path`, links followed, is `directory` or a folder that holds it.
bool holds(const fs::path& path, const fs::path& directory) {
  std::error_code code;
  const fs::path outer = fs::canonical(path, code), inner = fs::canonical(directory, code);
  return !code && std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

/// The folders of the classes. A link that leads back to a folder above is none: its pictures would have a second
/// class, or be of both parts. Error(data) where two names lead to one folder.
std::vector<fs::path> class_folders(const fs::path& directory, Skipped& skipped) {
  std::vector<fs::path> folders = folders_in(directory);
  std::erase_if(folders, [&](const fs::path& folder) {
    if (!holds(folder, directory)) return false;
    if (skipped.count++ == 0) skipped.example = folder.string();
    return true;
  });
  std::map<fs::path, fs::path> known;  // where it lies -> its name
  for (const fs::path& folder : folders) {
    std::error_code code;
    const auto [other, is_new] = known.emplace(fs::canonical(folder, code), folder);
    if (!code && !is_new)
      fail(ErrorKind::data, "[images] the classes '{}' and '{}' are one folder; remove the link",
           other->second.string(), folder.string());
  }
  return folders;
}

Listing list_pictures(const fs::path& directory) {
  Listing listing;
  const std::vector<fs::path> folders = class_folders(directory, listing.skipped);
  if (folders.empty())
    fail(ErrorKind::data, "[images] '{}' has no folders; put the pictures of each class into a folder with its name",
         directory.string());
  for (const fs::path& folder : folders) {
    const size_t before = listing.pictures.size();
    collect(folder, static_cast<int32_t>(listing.classes.size()), listing.pictures, listing.skipped);
    listing.classes.push_back(class_of_folder(folder));
    if (listing.pictures.size() == before && folders.size() > 1)
      fail(ErrorKind::data, "[images] the class folder '{}' holds no JPEG or PNG images; remove it or fill it",
           folder.string());
  }
  if (listing.pictures.empty())
    fail(ErrorKind::data, "[images] '{}' holds no JPEG or PNG images; want DIR/CLASS/PICTURE.jpg", directory.string());
  return listing;
}

/// Of pictures that are measured each counts once, so that none can stand for another: damaged ones are left out.
void leave_damaged_out(const fs::path& directory, std::vector<Picture>& pictures, const DamageLog& damage,
                       std::string& note) {
  std::mutex mutex;
  std::optional<Error> refused;
  const auto count = static_cast<int64_t>(pictures.size());
  parallel_for(static_cast<int>(available_cores()), count, 16, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) try {
        const fs::path& file = pictures[static_cast<size_t>(at)].path;
        try {
          read_image(file, 1);
        } catch (const Error& error) {
          if (!is_damage(error, file)) throw;
          damage.add(at, error.what());
        }
      } catch (const Error& error) {
        const std::lock_guard lock(mutex);
        if (!refused) refused = error;
      }
  });
  if (refused) throw Error(*refused);
  if (damage.count() == 0) return;
  if (damage.count() == count)
    fail(ErrorKind::data,
         "[images] all {} test pictures of '{}' are damaged, and none is left to measure ({}); copy them "
         "again",
         count, directory.string(), damage.all().front().message);
  note += fmt::format("{}{} of {} test pictures are damaged and left out: {}{}", note.empty() ? "" : "; ",
                      damage.count(), count, damage.all().front().message, damage.count() > 1 ? "; ..." : "");
  int64_t at = 0;
  std::erase_if(pictures, [&](const Picture&) { return damage.has(at++); });
}

json parse_encoding(const std::string& encoding) {
  if (encoding.empty()) return json();
  json root = json::parse(encoding, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object() || root.value("kind", std::string()) != "images" || !root.contains("classes"))
    fail(ErrorKind::data, "[images] the model was not trained on a folder of images; choose other data");
  return root;
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
  const int64_t needed = learned.is_object() ? learned.value("resize", int64_t{0}) : 0;
  return to_sample(read_image(path, shortest_decoded(decodes_exactly(info.encoding), needed)), info);
}

PictureSettings picture_settings(const SpecOptions& options, const std::string& encoding) try {
  const json learned = parse_encoding(encoding);
  const auto usual = [&](const char* key, int64_t fallback) {
    return learned.is_object() ? learned.value(key, fallback) : fallback;
  };
  PictureSettings settings;
  settings.size = options.integer("size", usual("size", kDefaultPictureSize), 1, kMostPictureSide);
  settings.channels = channels_option(options, usual("channels", 3));
  settings.exact = exact_option(options, decodes_exactly(encoding));
  const int64_t of_size = usual_resize(settings.size);
  const bool as_trained = settings.size == usual("size", 0);  // else what was learned is of another size
  const int64_t resize = as_trained ? usual("resize", of_size) : of_size;
  settings.resize = options.integer("resize", resize, settings.size, kMostPictureSide);
  if (learned.is_object()) settings.classes = learned["classes"].get<std::vector<std::string>>();
  return settings;
} catch (const json::exception&) {
  fail(ErrorKind::data, "[{}] what the model was trained on is damaged: its sizes or classes are none", options.kind());
}

std::string print_encoding(const PictureSettings& settings, const std::vector<std::string>& classes) {
  json encoding{{"kind", "images"},
                {"size", settings.size},
                {"resize", settings.resize},
                {"channels", settings.channels},
                {"classes", classes}};
  if (settings.exact) encoding[kDecodeOption] = "exact";
  return encoding.dump();
}

std::vector<int32_t> trained_numbers(const std::string& kind, const std::vector<std::string>& classes,
                                     const std::vector<std::string>& trained) {
  std::vector<int32_t> numbers;
  for (const std::string& name : classes) {
    const auto found = std::find(trained.begin(), trained.end(), name);
    if (found == trained.end())
      fail(ErrorKind::data, "[{}] the class '{}' is none of the {} classes of the training data{}", kind, name,
           trained.size(), suggestion(name, trained));
    numbers.push_back(static_cast<int32_t>(found - trained.begin()));
  }
  return numbers;
}

bool image_folder_has_whole(const DataSpec& spec) { return split_folders(spec.argument, is_folder).train.empty(); }

bool image_folder_has_test_split(const DataSpec& spec) {
  const SplitFolders parts = split_folders(spec.argument, is_folder);
  return !parts.test.empty() || TestSplit(folder_options(spec), kDefaultPictureSplit).exists();
}

std::unique_ptr<Dataset> open_image_folder(const DataSpec& spec, Split split, const std::string& encoding) {
  const SpecOptions options = folder_options(spec);
  const PictureSettings settings = picture_settings(options, encoding);
  const int64_t cache_bytes = cache_option(options, split);
  const TestSplit test(options, kDefaultPictureSplit);
  std::error_code code;
  if (spec.argument.empty()) fail(ErrorKind::usage, "[images] wants a folder: write images:DIR");
  if (!fs::is_directory(spec.argument, code))
    fail(ErrorKind::io, "[images] '{}' is no folder{}; check the path", spec.argument,
         code ? ": " + code.message() : "");
  const SplitFolders parts = split_folders(spec.argument, is_folder);
  const fs::path directory = split == Split::test && !parts.test.empty() ? parts.test
                             : !parts.train.empty()                      ? parts.train
                                                                         : fs::path(spec.argument);
  Listing listing = list_pictures(directory);
  if (parts.test.empty()) {
    std::vector<int32_t> strata;
    for (const Picture& picture : listing.pictures) strata.push_back(picture.label);
    keep_members(listing.pictures, test.members(strata, split, directory.string(), "pictures"));
  }
  if (!settings.classes.empty()) {
    const std::vector<int32_t> numbers = trained_numbers("images", listing.classes, settings.classes);
    for (Picture& picture : listing.pictures) picture.label = numbers[static_cast<size_t>(picture.label)];
    listing.classes = settings.classes;
  }
  if (listing.classes.size() < 2)
    fail(ErrorKind::data, "[images] '{}' has one class folder only, '{}'; want at least two classes",
         directory.string(), listing.classes.front());
  DatasetInfo info;
  info.name = name_of_folder(spec.argument);
  info.sample_shape = Shape{settings.channels, settings.size, settings.size};
  info.classes = static_cast<int64_t>(listing.classes.size());
  info.class_names = listing.classes;
  info.decoded = true;
  if (listing.skipped.count > 0)
    info.note = fmt::format("'{}': left out {} file{} that {} no JPEG or PNG image{}, such as '{}'", directory.string(),
                            listing.skipped.count, listing.skipped.count == 1 ? "" : "s",
                            listing.skipped.count == 1 ? "is" : "are", listing.skipped.count == 1 ? "" : "s",
                            listing.skipped.example);
  info.encoding = print_encoding(settings, listing.classes);
  std::unique_ptr<DamageLog> damage;
  if (const std::optional<std::string> limit = options.find(kDamageOption)) {
    const auto count = static_cast<int64_t>(listing.pictures.size());
    damage = std::make_unique<DamageLog>(
        count, parse_damage_limit(*limit, count, fmt::format("[images] {}", kDamageOption)),
        DamageLog::Words{"images", split == Split::train ? "training pictures" : "test pictures",
                         fmt::format("copy them again, or allow more (`weft data {} --verify` names all)",
                                     quoted_for_shell("images:" + spec.argument))});
    if (split != Split::train) leave_damaged_out(directory, listing.pictures, *damage, info.note);
  }
  return std::make_unique<ImageFolder>(std::move(info), directory, std::move(listing.pictures), settings,
                                       std::move(damage), split == Split::train, cache_bytes,
                                       disk_option(options, split));
}

}  // namespace weft::data
