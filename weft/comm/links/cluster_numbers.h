// Numbers of a cluster.toml, with errors that name the key. For the files that read it.
#pragma once

#include <toml++/toml.h>

#include <cmath>
#include <optional>
#include <string>

#include "weft/base/error.h"
#include "weft/comm/links/links.h"

namespace weft::comm {

/// `section`: null where the file has none of that name, which is for errors.
inline double number_of(const toml::table* section, const std::string& path, const std::string& name, const char* key) {
  const std::optional<double> value = section == nullptr ? std::nullopt : (*section)[key].value<double>();
  if (!value || !(*value >= 0) || std::isinf(*value))
    fail(ErrorKind::data, "'{}': {}.{} has to be a number, 0 or above; `weft cluster probe` writes such a file", path,
         name, key);
  return *value;
}

inline double positive_of(const toml::table* section, const std::string& path, const std::string& name,
                          const char* key) {
  const double value = number_of(section, path, name, key);
  if (value == 0)
    fail(ErrorKind::data, "'{}': {}.{} has to be above 0; `weft cluster probe` writes such a file", path, name, key);
  return value;
}

inline LinkCosts link_of(const toml::table* section, const std::string& path, const std::string& name) {
  return {.latency_seconds = number_of(section, path, name, "latency_us") * 1e-6,
          .bytes_per_second = positive_of(section, path, name, "megabytes_per_second") * 1e6,
          .message_seconds = number_of(section, path, name, "message_us") * 1e-6};
}

/// Three lines.
inline std::string link_text(const LinkCosts& link) {
  return fmt::format("latency_us = {:.4g}\nmessage_us = {:.4g}\nmegabytes_per_second = {:.6g}\n",
                     link.latency_seconds * 1e6, link.message_seconds * 1e6, link.bytes_per_second / 1e6);
}

}  // namespace weft::comm
