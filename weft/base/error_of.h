// What any exception says to users.
#pragma once

#include <exception>

#include "weft/base/exception.h"

namespace weft {

/// An Error as it is; of others what they are as one, with the next step.
Error error_of(const std::exception_ptr& thrown);

}  // namespace weft
