// Whether a thread has met an invalid floating-point operation: a NaN in a maximum or a comparison, infinity less
// infinity, zero times infinity. The processor notes it and goes on (IEEE 754, section 7.2).
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace weft {

/// False on processors of which weft does not read the note.
constexpr bool notes_invalid_operations() {
#if defined(__x86_64__)
  return true;
#else
  return false;
#endif
}

/// Of the calling thread, since its last call; the note is taken away.
inline bool take_invalid_operation() {
#if defined(__x86_64__)
  constexpr unsigned kInvalid = 1;  // of MXCSR
  const unsigned notes = _mm_getcsr();
  if ((notes & kInvalid) == 0) return false;
  _mm_setcsr(notes & ~kInvalid);
  return true;
#else
  return false;
#endif
}

}  // namespace weft
