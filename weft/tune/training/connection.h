// One end of a connection between a tuner and a worker: messages in JSON, and folders with their files, over TCP.
// Nothing blocks; each end sends a sign of life every second, and one that is silent for too long counts as lost.
// What goes over the wire are frames: a letter for the kind, the length as 8 bytes (little endian), the content.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "weft/tune/training/address.h"

namespace weft::tune {

using Message = nlohmann::json;

class Connection {
 public:
  /// `silence_seconds` of the other end, after which it is lost.
  Connection(Socket socket, double silence_seconds);

  /// Behind what was sent before. After the loss of the other end it does nothing.
  void send(const Message& message);
  /// The files and links of a folder, in which nothing may change until is_sent(). The other end gets them, and then
  /// the message {"type":"folder"}. Error(io) where the folder cannot be listed.
  void send_folder(const std::filesystem::path& folder);
  /// Where the next folder goes that the other end sends. What is there is removed. Whoever sends one that nobody waits
  /// for is lost, and likewise who sends names that lead out of it.
  void receive_into(const std::filesystem::path& folder) { awaited_ = folder; }
  /// From those who are known, or whose words are awaited; not before.
  void allow_long_messages() { is_trusted_ = true; }
  /// While the other end may be busy with what keeps it from giving signs of life, such as opening its data.
  void allow_silence(bool may_be_silent) { may_be_silent_ = may_be_silent; }

  /// Moves what can be moved now. `now` in seconds, of a clock that only goes forward.
  void pump(double now);
  /// The next message that has come.
  std::optional<Message> next();
  bool is_sent() const { return output_.empty() && queue_.empty() && file_ < 0; }
  bool is_lost() const { return !why_.empty(); }
  const std::string& why() const { return why_; }
  int socket() const { return socket_.get(); }
  bool wants_to_write() const { return !is_sent(); }

  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

 private:
  /// What is still to be sent: a frame, or a file by its path.
  struct Piece {
    std::string frame;
    std::filesystem::path file;
    std::string name;
  };
  void lose(const std::string& why);
  void fill_output();
  void begin_file(const Piece& piece);
  void write_some(double now);
  void read_some(double now);
  void take_frames();
  void take(char kind, std::string_view content);
  void take_folder_frame(char kind, std::string_view content);
  void begin_received_file(const Message& head);
  void take_chunk(std::string_view content);
  void end_received_file();
  std::filesystem::path place_of(const std::string& name) const;

  Socket socket_;
  const double silence_seconds_;
  bool is_trusted_ = false, may_be_silent_ = false;
  std::string why_;  // it is lost
  double heard_ = -1, spoke_ = -1;
  std::deque<Piece> queue_;
  std::string output_, input_;
  size_t written_ = 0;  // of the output
  int file_ = -1;       // that is being sent
  std::string file_path_;
  uint64_t file_left_ = 0;
  std::filesystem::path awaited_;  // empty: nobody waits for a folder
  std::filesystem::path folder_;   // that is being received
  int received_file_ = -1;
  uint64_t received_left_ = 0;
  std::deque<Message> messages_;
};

}  // namespace weft::tune
