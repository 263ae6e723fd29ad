#include "weft/run/checkpoint/file_records.h"

#include <nlohmann/json.hpp>

namespace weft::run {

std::string print(const FileRecords& files) {
  nlohmann::json root = nlohmann::json::object();
  for (const auto& [name, record] : files) root[name] = {record.bytes, record.checksum};
  return root.dump();
}

FileRecords parse_files(const std::string& text) {
  const nlohmann::json root = nlohmann::json::parse(text);
  FileRecords files;
  for (const auto& [name, record] : root.items())
    files[name] = {.bytes = record.at(0).get<uint64_t>(), .checksum = record.at(1).get<uint32_t>()};
  return files;
}

}  // namespace weft::run
