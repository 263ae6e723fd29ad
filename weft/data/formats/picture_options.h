// What the kinds of data that are pictures share: defaults, options, folders of a split, the limit of their cache.
#pragma once

#include <filesystem>
#include <functional>

#include "weft/data/dataset/data_spec.h"
#include "weft/data/dataset/dataset.h"

namespace weft::data {

inline constexpr int64_t kDefaultPictureSize = 128, kMostPictureSide = 4096;
inline constexpr double kDefaultPictureSplit = 0.2;

/// The shorter side from whose middle samples of this size are usually cut: 256 for 224.
inline int64_t usual_resize(int64_t size) { return (size * 8 + 6) / 7; }

/// 3 (RGB) or 1 (grey). Error(usage).
int64_t channels_option(const SpecOptions& options, int64_t fallback);

/// decode=scaled or exact: whether a JPEG may be decoded to a smaller size in one go (image.h), or always pixel by
/// pixel as other programs do. Kept in an encoding as "decode": "exact".
inline constexpr const char* kDecodeOption = "decode";
bool exact_option(const SpecOptions& options, bool fallback);
/// What an encoding says of it.
bool decodes_exactly(const std::string& encoding);
/// The `shortest` of read_image() for pictures of which so much is needed.
inline int64_t shortest_decoded(bool exactly, int64_t needed) { return exactly ? 0 : needed; }

/// cache=MB of decoded pictures of a split to keep in memory, or "auto": of the memory that is free now half for
/// training, an eighth for testing. In bytes. Error(usage).
int64_t cache_option(const SpecOptions& options, Split split);

/// disk=MB of those that find no place in memory to keep on disk, in all, or "auto": a quarter of what is free there
/// for training, an eighth of that for testing. In bytes; 0 with cache=0. Error(usage).
int64_t disk_option(const SpecOptions& options, Split split);

/// DIR/train where there is one, with the test folder beside it: test, val, valid or validation; empty paths where
/// there is none. `holds_data` says whether a folder is one.
struct SplitFolders {
  std::filesystem::path train, test;
};
SplitFolders split_folders(const std::filesystem::path& directory,
                           const std::function<bool(const std::filesystem::path&)>& holds_data);

/// The name of data in a folder, from its path.
std::string name_of_folder(const std::filesystem::path& directory);

}  // namespace weft::data
