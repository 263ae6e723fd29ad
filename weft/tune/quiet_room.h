// Times are measured while nobody trains: the processes that work on one study agree on it by two locks in its folder.
#pragma once

#include <filesystem>

namespace weft::tune {

/// Of one process. The locks end with it, however that comes.
class QuietRoom {
 public:
  /// Error(io) where the folder's lock files cannot be made.
  explicit QuietRoom(const std::filesystem::path& folder);
  ~QuietRoom();
  QuietRoom(const QuietRoom&) = delete;
  QuietRoom& operator=(const QuietRoom&) = delete;

  /// To start training, before each trial. False while somebody measures, or waits to: the trials that run end by and
  /// by.
  bool enter();
  /// Once no trial of this process runs.
  void leave();
  /// To measure. False while another process trains; from the first call on none of them starts a trial. Call it again
  /// until it is true, outside of the room.
  bool enter_alone();
  void leave_alone();

 private:
  int turn_ = -1;  // held by whoever measures or waits to
  int room_ = -1;  // shared by those who train
  bool is_inside_ = false, has_turn_ = false;
};

}  // namespace weft::tune
