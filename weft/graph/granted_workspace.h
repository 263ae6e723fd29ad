// The attribute of nodes that says how much workspace their kernels may take to be faster. The pass mark_winograd sets
// it where the backend asks for it (Backend::takes_granted_workspace). Its name is that of the first kernels which did:
// text forms and measured times of kernels hold it.
#pragma once

#include "weft/graph/attributes.h"

namespace weft {

inline constexpr const char* kGrantedWorkspace = "winograd";

/// In bytes; 0 where nothing is granted.
inline int64_t granted_workspace(const Attributes& attributes) {
  return attributes.has(kGrantedWorkspace) ? attributes.integer(kGrantedWorkspace) : 0;
}

}  // namespace weft
