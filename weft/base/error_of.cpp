#include "weft/base/error_of.h"

#include <fmt/format.h>

#include <filesystem>
#include <new>
#include <string>
#include <system_error>

namespace weft {

Error error_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return error;
  } catch (const std::filesystem::filesystem_error& error) {
    return {ErrorKind::io,
            fmt::format("cannot use '{}': {}; check the path", error.path1().string(), error.code().message())};
  } catch (const std::system_error& error) {
    // fmt::print says that it cannot write; std::thread gives the reason alone.
    if (error.code() == std::errc::resource_unavailable_try_again &&
        std::string(error.what()).find("write") == std::string::npos)
      return {ErrorKind::io,
              fmt::format("cannot start a thread: {}; end other programs, or raise the limit of processes "
                          "(`ulimit -u`)",
                          error.code().message())};
    return {ErrorKind::io, fmt::format("cannot write to standard output: {}", error.code().message())};
  } catch (const std::bad_alloc&) {
    return {ErrorKind::io, "out of memory; choose a smaller batch or model"};
  } catch (const std::exception& error) {
    return {ErrorKind::internal,
            fmt::format("internal error: {}; please report this with the command you ran", error.what())};
  }
}

}  // namespace weft
