#include "weft/tune/quiet_room.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "weft/base/error.h"

namespace weft::tune {

namespace {

int open_lock(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) fail(ErrorKind::io, "cannot make '{}'; check the permissions of its folder", file.string());
  return descriptor;
}

}  // namespace

QuietRoom::QuietRoom(const std::filesystem::path& folder)
    : turn_(open_lock(folder / "turn.lock")), room_(open_lock(folder / "room.lock")) {}

QuietRoom::~QuietRoom() {
  close(turn_);
  close(room_);
}

bool QuietRoom::enter() {
  if (flock(turn_, LOCK_SH | LOCK_NB) != 0) return false;
  if (!is_inside_) is_inside_ = flock(room_, LOCK_SH | LOCK_NB) == 0;
  flock(turn_, LOCK_UN);
  return is_inside_;
}

void QuietRoom::leave() {
  if (is_inside_) flock(room_, LOCK_UN);
  is_inside_ = false;
}

bool QuietRoom::enter_alone() {
  if (!has_turn_) has_turn_ = flock(turn_, LOCK_EX | LOCK_NB) == 0;
  return has_turn_ && flock(room_, LOCK_EX | LOCK_NB) == 0;
}

void QuietRoom::leave_alone() {
  flock(room_, LOCK_UN);
  flock(turn_, LOCK_UN);
  has_turn_ = false;
}

}  // namespace weft::tune
