// One file with a model for inference: graphs as text, constants, checksums over all of it. `NAME.weft`.
//
//   weft-model 1 BYTES HASH       64 bytes: the version of the format, then length and hash of the header
//   {"name": ..., ...}            the header, JSON
//   graphs, constants             each at a multiple of 64 bytes, little-endian
//
// The header names all parts with offsets from its end (rounded up to 64), lengths and hashes (base/hash128.h). The
// constants are read where the mapped file has them: nothing is copied.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "weft/engine/deployed_model.h"

namespace weft::engine {

/// Whether the file begins as one. false where it cannot be read.
bool is_model_file(const std::filesystem::path& path);

/// Replaces the file whole or not at all. Error(io).
void write_model(const std::filesystem::path& path, const DeployedModel& model);

/// Maps the file and checks every part against its hash. Error(io) where it cannot be read, Error(data) where it is no
/// such file, damaged, cut short, or of a newer format; all name the path. The constants keep the mapping.
DeployedModel read_model(const std::filesystem::path& path);

/// The same of bytes in memory, which `owner` keeps; `name` is for messages.
DeployedModel parse_model(std::span<const uint8_t> bytes, std::shared_ptr<const void> owner, const std::string& name);

}  // namespace weft::engine
