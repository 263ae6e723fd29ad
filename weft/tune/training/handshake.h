// How a tuner and a worker know each other: both have the study's token, and neither says it.
//   tuner   {"type":"hello","protocol":1,"weft":"0.1.0","nonce":HEX}
//   worker {"type":"hello","protocol":1,"weft":"0.1.0","nonce":HEX,"proof":HEX,"host":NAME,"process":ID,"memory":BYTES}
//   tuner   {"type":"welcome","proof":HEX,"study":NAME,"recipe":TOML,"set":[...],"threads":1,"data":TEXT}
//   worker  {"type":"ready"}
// or {"type":"refused","why":WORDS} of either side. Then, as often as there are trials:
//   tuner   a folder, where the trial goes on, {"type":"train",...}, and {"type":"stop"} where it is to end early
//   worker  {"type":"metrics",...}, at the end a folder, {"type":"ended",...}
//   tuner   {"type":"kept"}
// and {"type":"leaving"} of a worker, {"type":"bye","why":WORDS} of the tuner. What follows is not encrypted: across
// networks that others use, lead it through a tunnel of ssh.
#pragma once

#include <filesystem>
#include <string>

namespace weft::tune {

inline constexpr int kProtocol = 1;
/// Of the other end, after which it counts as lost.
inline constexpr double kSilenceSeconds = 15;

enum class Side { tuner, worker };

/// That this side knows the token; another one for each pair of nonces.
std::string proof_of(Side side, const std::string& token, const std::string& tuner_nonce,
                     const std::string& worker_nonce);

/// Why the two cannot work together, in words for both; empty where they can.
std::string version_trouble(const std::string& tuner, int tuner_protocol, const std::string& worker,
                            int worker_protocol);

/// The token in a file, made with the rights of its owner alone where there is none. Error(io), Error(data).
std::string kept_token(const std::filesystem::path& file);
/// Error(usage) where it is too short to protect anything, or the file cannot be read.
std::string read_token(const std::filesystem::path& file);

}  // namespace weft::tune
