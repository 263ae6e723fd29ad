#include "weft/run/held_copy.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/run/checkpoint/store.h"
#include "weft/run/run_directory.h"

namespace weft::run {

namespace fs = std::filesystem;

namespace {

constexpr const char* kManifest = "manifest.json";

FileRecord record_of(const fs::path& path) {
  const std::vector<uint8_t> bytes = read_bytes(path);
  return {.bytes = bytes.size(), .checksum = crc32_of(bytes.data(), bytes.size())};
}

bool is_same(const FileRecord& a, const FileRecord& b) { return a.bytes == b.bytes && a.checksum == b.checksum; }

}  // namespace

NewestCheckpoint find_newest(const fs::path& path) {
  NewestCheckpoint newest;
  std::error_code code;
  if (!fs::exists(path / "spec.toml", code)) return newest;
  newest.has_run = true;
  newest.recipe = record_of(path / "spec.toml").checksum;
  const CheckpointStore store(RunDirectory::open(path).checkpoints(), /*keep=*/1);
  store.put_back();
  for (const fs::path& checkpoint : store.list()) try {
      const Manifest manifest = check_checkpoint(checkpoint);
      newest.step = manifest.position.step;
      if (manifest.best) newest.best = manifest.best->step;
      break;
    } catch (const Error& error) {
      newest.damaged.emplace_back(error.what());
    }
  return newest;
}

FileRecords checkpoint_files(const fs::path& path, int64_t step) {
  const fs::path checkpoint = path / "checkpoints" / CheckpointStore::directory_name(step);
  std::error_code code;
  if (!fs::exists(checkpoint / kManifest, code)) return {};
  try {
    FileRecords files = check_checkpoint(checkpoint).files;
    files[kManifest] = record_of(checkpoint / kManifest);
    return files;
  } catch (const Error&) {
    return {};
  }
}

FileRecords other_files(const fs::path& path) {
  FileRecords files;
  std::error_code code;
  if (!fs::exists(path / "spec.toml", code)) return files;
  const RunDirectory directory = RunDirectory::open(path);
  for (const fs::path& file : directory.files()) files[fs::relative(file, path).string()] = record_of(file);
  return files;
}

bool same_tensors(const FileRecords& a, const FileRecords& b) {
  return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&](const auto& file) {
           const auto other = b.find(file.first);
           return other != b.end() && (file.first == kManifest || is_same(file.second, other->second));
         });
}

std::string print(const NewestCheckpoint& newest) {
  nlohmann::json root = {{"has_run", newest.has_run},
                         {"recipe", newest.recipe},
                         {"step", newest.step},
                         {"damaged", newest.damaged},
                         {"best", nullptr}};
  if (newest.best) root["best"] = *newest.best;
  return root.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

NewestCheckpoint parse_newest(const std::string& text) {
  const nlohmann::json root = nlohmann::json::parse(text);
  NewestCheckpoint newest{.has_run = root.at("has_run").get<bool>(),
                          .recipe = root.at("recipe").get<uint32_t>(),
                          .step = root.at("step").get<int64_t>(),
                          .damaged = root.at("damaged").get<std::vector<std::string>>()};
  if (!root.at("best").is_null()) newest.best = root.at("best").get<int64_t>();
  return newest;
}

}  // namespace weft::run
