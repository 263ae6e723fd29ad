// What reading and writing JPEG share: libjpeg's default error handler ends the process, this one notes the message and
// jumps back.
#pragma once

#include <csetjmp>
#include <cstdio>
// libjpeg's header needs <cstdio> before it.
#include <jpeglib.h>

namespace weft::data {

struct JpegErrors {
  jpeg_error_mgr base;  // first, so that libjpeg's pointer to it is a pointer to this
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
  bool truncated;  // set by the decoder's own handler of warnings

  static JpegErrors& of(j_common_ptr info) { return *reinterpret_cast<JpegErrors*>(info->err); }

  /// For `base.error_exit`.
  [[noreturn]] static void jump_back(j_common_ptr info) {
    info->err->format_message(info, of(info).message);
    std::longjmp(of(info).back, 1);
  }
};

}  // namespace weft::data
