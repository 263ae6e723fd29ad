#include "weft/data/formats/text_images.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/data/dataset/test_split.h"
#include "weft/data/dataset/trained_options.h"
#include "weft/data/formats/picture_options.h"
#include "weft/data/formats/tab_file.h"
#include "weft/data/pictures/picture_cache.h"
#include "weft/data/pictures/picture_files.h"
#include "weft/data/texts/text_file.h"
#include "weft/data/texts/utf8.h"

namespace weft::data {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kLineSplit = 0.1;
constexpr int64_t kMostPixels = 1 << 14, kLongestText = 1 << 12, kDefaultHeight = 32;
constexpr size_t kMeasured = 256;
const std::vector<std::string> kBlankToken = {"<blank>"};
constexpr const char* kListFields = "PICTURE<TAB>TEXT";

struct Entry {
  fs::path picture;
  std::string text, where;  // for messages
};

/// The pictures of a list or folder.
struct LineListing {
  std::vector<Entry> entries;
  std::string note;
};

struct Labelled {
  fs::path picture;
  std::vector<uint16_t> text;
};

class TextImages : public Dataset {
 public:
  TextImages(DatasetInfo info, std::vector<Labelled> samples, int64_t cache_bytes, int64_t disk_bytes)
      : Dataset(std::move(info)),
        samples_(std::move(samples)),
        cache_(static_cast<int64_t>(samples_.size()), cache_bytes, disk_bytes) {}

  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  void get(const SampleKey& key, std::span<uint8_t> destination) const override {
    const std::shared_ptr<const Image> image = cache_.get(
        key.index, [&] { return read_line_picture(samples_[static_cast<size_t>(key.index)].picture, info()); });
    std::copy(image->pixels.begin(), image->pixels.end(), destination.begin());
  }
  void get_target(const SampleKey& key, std::span<uint8_t> destination) const override {
    const std::vector<uint16_t>& text = samples_[static_cast<size_t>(key.index)].text;
    auto* labels = reinterpret_cast<int32_t*>(destination.data());
    std::fill(std::copy(text.begin(), text.end(), labels), labels + info().target_shape[0], TextImageEncoding::kBlank);
  }
  int64_t cache_bytes_to_come() const override { return cache_.bytes_to_come(cache_.estimate_bytes(sample_bytes())); }
  int64_t uncached_bytes() const override { return cache_.bytes_left_out(cache_.estimate_bytes(sample_bytes())); }
  void will_need(int64_t index) const override {
    if (!cache_.keeps(index)) read_ahead(samples_[static_cast<size_t>(index)].picture);
  }
  void limit_cache(int64_t bytes) override { cache_.set_limit_bytes(std::min(cache_.limit_bytes(), bytes)); }
  std::string sample_name(int64_t index) const override {
    return samples_[static_cast<size_t>(index)].picture.filename().string();
  }

 private:
  std::vector<Labelled> samples_;
  PictureCache cache_;
};

SpecOptions line_options(const DataSpec& spec) {
  return SpecOptions(
      spec, {"test", "split", "seed", "height", "width", "length", "channels", kDecodeOption, "cache", "disk"});
}

LineListing read_list(const fs::path& path) {
  const TabFile file("lines", path.string(), kListFields);
  LineListing listing{{}, file.note()};
  std::error_code code;
  for (const TabLine& line : file.lines()) {
    const fs::path picture = path.parent_path() / fs::path(line.first);
    if (!fs::exists(picture, code))
      fail(ErrorKind::io, "{}: no file '{}'; paths begin at the folder of the list", file.where(line),
           picture.string());
    listing.entries.push_back({picture, std::string(line.second), file.where(line)});
  }
  return listing;
}

/// What a text file says, on one line.
std::string read_line(const fs::path& path) {
  std::string text = read_text_file(path.string());
  require_utf8(text, path.string());
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  const size_t first = text.find_first_not_of(' ');
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

LineListing read_folder(const fs::path& folder) {
  LineListing listing;
  int64_t alone = 0, silent = 0;
  std::error_code code;
  for (const fs::path& picture : sorted_entries("lines", folder)) {
    if (!is_picture(picture)) continue;
    const fs::path text = fs::path(picture).replace_extension(".gt.txt");
    if (!fs::exists(text, code)) {
      ++alone;
      continue;
    }
    std::string line = read_line(text);
    if (line.empty())
      ++silent;
    else
      listing.entries.push_back({picture, std::move(line), fmt::format("[lines] '{}'", text.string())});
  }
  if (listing.entries.empty())
    fail(ErrorKind::data, "[lines] '{}' holds no pictures NAME.png with texts NAME.gt.txt; name a list, {}, instead",
         folder.string(), kListFields);
  if (alone + silent > 0)
    listing.note = fmt::format("'{}': left out {} pictures without a text file and {} with an empty one",
                               folder.string(), alone, silent);
  return listing;
}

LineListing read_listing(const std::string& path) {
  std::error_code code;
  if (path.empty())
    fail(ErrorKind::usage, "[lines] wants a list or a folder: write lines:FILE, with {} on each line, or lines:DIR",
         kListFields);
  return fs::is_directory(path, code) ? read_folder(path) : read_list(path);
}

/// Of the widest of some pictures at this height, and so that the usual halvings leave no rest.
int64_t widest(const std::vector<Entry>& entries, int64_t height) {
  const size_t count = std::min(entries.size(), kMeasured);
  int64_t width = 0;
  std::optional<Error> error;
  for (size_t at = 0; at < count; ++at) try {
      const Image image = read_image(entries[at * entries.size() / count].picture, height);
      width = std::max(width, (image.width * height + image.height - 1) / image.height);
    } catch (const Error& unreadable) {  // said where it is needed, or by `weft data`
      if (!error) error = unreadable;
    }
  if (width == 0) throw Error(*error);
  return std::min((width + 3) / 4 * 4, kMostPixels);
}

TextImageEncoding learn(const SpecOptions& options, const LineListing& listing, const LineListing* test) {
  std::vector<std::string_view> texts;
  int64_t longest = 0;
  for (const LineListing* part : {&listing, test}) {
    if (part == nullptr) continue;
    for (const Entry& entry : part->entries) {
      texts.push_back(entry.text);
      longest = std::max(longest, count_units(entry.text, TextUnit::character));
    }
  }
  const int64_t height = options.integer("height", kDefaultHeight, 1, kMostPixels);
  const int64_t channels = channels_option(options, 1);
  int64_t width = options.integer("width", 0, 0, kMostPixels);
  if (width == 0) width = widest(listing.entries, height);
  return {TokenTable::learn(texts, TextUnit::character, kBlankToken, {}, "[lines] the texts"),
          channels,
          height,
          width,
          options.integer("length", std::min(longest, kLongestText), 1, kLongestText),
          exact_option(options, false)};
}

std::vector<Labelled> encode(const LineListing& listing, const TextImageEncoding& encoding, const std::string& path,
                             std::string& note) {
  std::vector<Labelled> samples;
  int64_t too_long = 0;
  std::string example;
  for (const Entry& entry : listing.entries) {
    std::vector<uint16_t> text = encoding.table.encode(entry.text, entry.where);
    if (static_cast<int64_t>(text.size()) > encoding.length) {
      if (too_long++ == 0) example = entry.picture.string();
    } else {
      samples.push_back({entry.picture, std::move(text)});
    }
  }
  note = listing.note;
  if (too_long > 0)
    note += fmt::format("{}'{}': left out {} text{} of more than {} characters, such as that of '{}'",
                        note.empty() ? "" : "; ", path, too_long, too_long == 1 ? "" : "s", encoding.length, example);
  if (samples.empty())
    fail(ErrorKind::data, "[lines] '{}': every text is longer than {} characters; raise length=", path,
         encoding.length);
  return samples;
}

DatasetInfo info_of(const TextImageEncoding& encoding, const std::string& path, const std::vector<Labelled>& samples) {
  DatasetInfo info;
  const fs::path name = fs::path(path).lexically_normal();
  info.name = printable_utf8((name.has_filename() ? name : name.parent_path()).stem().string());
  info.sample_shape = Shape{encoding.channels, encoding.height, encoding.width};
  info.target_shape = Shape{encoding.length};
  info.classes = encoding.table.size();
  info.class_names = encoding.table.names();
  info.task = "transcription";
  info.decoded = true;
  std::vector<int64_t> lengths;
  for (const Labelled& sample : samples) lengths.push_back(static_cast<int64_t>(sample.text.size()));
  info.facts = {{"texts", describe_lengths(std::move(lengths), TextUnit::character)},
                {"vocabulary", encoding.table.describe()}};
  info.encoding = encoding.to_json();
  return info;
}

}  // namespace

Image fit_line(const Image& image, const Shape& shape) {
  const int64_t channels = shape[0], height = shape[1], width = shape[2];
  const int64_t scaled = (image.width * height + image.height / 2) / image.height;
  const Image line = resize(with_channels(image, channels), height, std::clamp<int64_t>(scaled, 1, width));
  if (line.width == width) return line;
  Image result{channels, height, width, {}};
  result.pixels.resize(static_cast<size_t>(channels * height * width));
  const uint8_t* from = line.pixels.data();
  uint8_t* to = result.pixels.data();
  for (int64_t row = 0; row < channels * height; ++row, from += line.width, to += width)
    std::fill(std::copy_n(from, line.width, to), to + width, from[line.width - 1]);
  return result;
}

Image read_line_picture(const fs::path& path, const DatasetInfo& info) {
  const int64_t shortest = shortest_decoded(decodes_exactly(info.encoding), info.sample_shape[1]);
  return fit_line(read_image(path, shortest), info.sample_shape);
}

TextImageEncoding TextImageEncoding::from_json(const std::string& text) {
  constexpr const char* kOther = "[lines] the model was not trained on pictures of text; choose other data";
  try {
    const json root = json::parse(text);
    if (root.value("kind", "") != "lines") fail(ErrorKind::data, "{}", kOther);
    TextImageEncoding encoding{TokenTable(root.at("vocabulary").get<std::vector<std::string>>(), kBlankToken.size(),
                                          TextUnit::character, "[lines] what the model was trained on"),
                               root.at("channels"),
                               root.at("height"),
                               root.at("width"),
                               root.at("length"),
                               decodes_exactly(text)};
    const auto within = [](int64_t value, int64_t most) { return value >= 1 && value <= most; };
    if (!(encoding.channels == 1 || encoding.channels == 3) || !within(encoding.height, kMostPixels) ||
        !within(encoding.width, kMostPixels) || !within(encoding.length, kLongestText))
      fail(ErrorKind::data, "[lines] what the model was trained on is damaged: its sizes are out of range");
    return encoding;
  } catch (const json::exception&) {
    fail(ErrorKind::data, "{}", kOther);
  }
}

std::string TextImageEncoding::to_json() const {
  json root{{"kind", "lines"},      {"vocabulary", table.names()},
            {"channels", channels}, {"height", height},
            {"width", width},       {"length", length}};
  if (exact) root[kDecodeOption] = "exact";
  return root.dump();
}

bool text_images_have_test_split(const DataSpec& spec) { return TestSplit(line_options(spec), kLineSplit).exists(); }

std::unique_ptr<Dataset> open_text_images(const DataSpec& spec, Split split, const std::string& encoding) {
  const SpecOptions options = line_options(spec);
  const TestSplit test(options, kLineSplit);
  const int64_t cache_bytes = cache_option(options, split);
  std::optional<TextImageEncoding> known;
  if (!encoding.empty()) {
    known = TextImageEncoding::from_json(encoding);
    require_trained(options, "height", known->height);
    if (options.text("width", "") != "0") require_trained(options, "width", known->width);  // 0: as they are
    require_trained(options, "length", known->length);
    require_trained(options, "channels", known->channels);
    known->exact = exact_option(options, known->exact);
  }
  const bool apart = split == Split::test && test.file();
  LineListing listing = read_listing(known && apart ? *test.file() : spec.argument);
  if (!known) {
    const std::optional<LineListing> other = test.file() ? std::optional(read_listing(*test.file())) : std::nullopt;
    known = learn(options, listing, other ? &*other : nullptr);
    if (apart) listing = read_listing(*test.file());
  }
  std::string note;
  std::vector<Labelled> samples = encode(listing, *known, apart ? *test.file() : spec.argument, note);
  keep_members(samples, test.members(std::vector<int32_t>(samples.size(), 0), split, spec.argument, "pictures"));
  DatasetInfo info = info_of(*known, spec.argument, samples);
  info.note = note;
  return std::make_unique<TextImages>(std::move(info), std::move(samples), cache_bytes, disk_option(options, split));
}

}  // namespace weft::data
