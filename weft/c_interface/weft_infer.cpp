// The C interface of the inference library: handles, and errors that stay with them. No exception leaves it.
#include "weft/weft_infer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/version.h"
#include "weft/c_interface/inference_device.h"
#include "weft/engine/engine.h"
#include "weft/engine/model_file.h"
#include "weft/ops/all.h"
#include "weft/tensor/element.h"

namespace weft::c_interface {

/// What went wrong last. Setting it never throws: where no memory is left for the text, a fixed one stands for it.
class ErrorText {
 public:
  ErrorText() = default;
  ErrorText(const ErrorText&) = delete;
  ErrorText& operator=(const ErrorText&) = delete;

  void set(const char* text) noexcept {
    try {
      own_ = text;
      text_ = own_.c_str();
    } catch (...) {
      text_ = kNoMemory;
    }
  }
  void clear() noexcept { text_ = nullptr; }
  /// Null: nothing.
  const char* get() const noexcept { return text_; }

  static constexpr const char* kNoMemory = "out of memory; choose a smaller batch";

 private:
  std::string own_;
  const char* text_ = nullptr;
};

/// The last error of each thread: a thread reads its own while others write theirs.
class ErrorsByThread {
 public:
  void set(const char* text) noexcept {
    try {
      const std::lock_guard lock(mutex_);
      errors_[std::this_thread::get_id()].set(text);
    } catch (...) {
      has_lost_one_ = true;
    }
  }
  const char* get() const noexcept {
    try {
      const std::lock_guard lock(mutex_);
      const auto found = errors_.find(std::this_thread::get_id());
      if (found != errors_.end()) return found->second.get();
    } catch (...) {
      return ErrorText::kNoMemory;
    }
    return has_lost_one_ ? ErrorText::kNoMemory : nullptr;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::thread::id, ErrorText> errors_;
  std::atomic<bool> has_lost_one_ = false;
};

}  // namespace weft::c_interface

struct weft_model {
  weft::OpRegistry ops;
  std::unique_ptr<weft::Device> device;
  std::unique_ptr<weft::engine::Engine> engine;   // null: it could not be loaded
  weft::c_interface::ErrorText load_error;        // set before anybody else knows the model, then only read
  weft::c_interface::ErrorsByThread call_errors;  // of later calls
};

struct weft_stream {
  weft_model* model = nullptr;
  std::unique_ptr<weft::engine::Stream> stream;  // null: the model could not be loaded
  std::vector<float> pictures;                   // rows of the first input
  std::map<size_t, weft::Tensor> outputs;        // of the last run, as far as their rows were compared
  weft::c_interface::ErrorText error;
};

namespace {

using weft::ErrorKind;
using weft::fail;

/// Runs `body`; what it throws becomes the error, and `failed` the answer.
template <typename Answer, typename Body>
Answer guarded(auto& error, Answer failed, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    error.set(weft::c_interface::ErrorText::kNoMemory);
  } catch (const std::exception& caught) {
    error.set(caught.what());
  } catch (...) {
    error.set("internal error: an exception of no known type");
  }
  return failed;
}

weft::engine::Stream& stream_of(weft_stream& handle) {
  if (handle.stream == nullptr) {
    const char* const why = handle.model->load_error.get();
    fail(ErrorKind::usage, "{}",
         why != nullptr ? why : "the stream could not be opened; free memory and open it again");
  }
  return *handle.stream;
}

size_t place_of(const std::vector<weft::engine::Port>& ports, int index, const char* what) {
  if (index < 0 || static_cast<size_t>(index) >= ports.size())
    fail(ErrorKind::usage, "the model has {} {}s, and none of index {}", ports.size(), what, index);
  return static_cast<size_t>(index);
}

/// The DType's name lives as long as the program.
const char* name_of_dtype(weft::DType dtype) { return weft::name_of(dtype).data(); }

void set_picture(weft_stream& handle, int64_t row, const char* path) {
  weft::engine::Stream& stream = stream_of(handle);
  const auto& pictures = stream.engine().model().pictures;
  if (!pictures)
    fail(ErrorKind::usage,
         "the model does not say how pictures become its input; compile it with --mean and --deviation, or set the "
         "input");
  if (row < 0 || row >= (int64_t{1} << 32) / pictures->elements())
    fail(ErrorKind::usage, "{} is no row of a batch of pictures", row);
  const auto each = static_cast<size_t>(pictures->elements()), first = static_cast<size_t>(row) * each;
  // Read before anything moves: the input that was set stays what it was where the file cannot be read.
  std::vector<float> picture(each);
  weft::engine::read_picture(path, *pictures, picture);
  if (handle.pictures.size() < first + each) handle.pictures.resize(first + each, 0.0f);
  std::copy(picture.begin(), picture.end(), handle.pictures.begin() + static_cast<std::ptrdiff_t>(first));
  stream.set_input(0, handle.pictures.data());
}

/// A batch beyond the rows of pictures that were set would read what is not there.
void check_pictures(const weft_stream& handle, const weft::engine::Stream& stream, int64_t batch) {
  if (handle.pictures.empty() || stream.input(0) != handle.pictures.data()) return;
  const int64_t rows = static_cast<int64_t>(handle.pictures.size()) / stream.engine().model().pictures->elements();
  if (batch > rows) fail(ErrorKind::usage, "a batch of {} wants as many pictures, {} are set", batch, rows);
}

int64_t best(weft_stream& handle, int index, int64_t row) {
  weft::engine::Stream& stream = stream_of(handle);
  const size_t place = place_of(stream.engine().model().outputs, index, "output");
  const auto known = handle.outputs.find(place);
  const weft::Tensor& output =
      known != handle.outputs.end() ? known->second : handle.outputs.emplace(place, stream.output(place)).first->second;
  const int64_t rows = output.shape().rank() > 0 ? output.shape()[0] : 1;
  if (row < 0 || row >= rows || output.elements() == 0)
    fail(ErrorKind::usage, "{} is no row of the output, which has {}", row, rows);
  const int64_t width = output.elements() / rows;
  const auto value = [&](int64_t at) { return weft::load_element(output.dtype(), output.data(), row * width + at); };
  int64_t found = 0;
  for (int64_t at = 1; at < width; ++at)
    if (value(at) > value(found)) found = at;
  if (std::isnan(value(found)))
    fail(ErrorKind::numeric,
         "row {} of the output '{}' begins with a NaN, so that none of its numbers is the largest; look for NaN or "
         "infinity in the inputs",
         row, stream.engine().model().outputs[place].name);
  return found;
}

}  // namespace

extern "C" {

const char* weft_version(void) { return weft::version().data(); }

weft_model* weft_load(const char* path, int threads) {
  auto* model = new (std::nothrow) weft_model;
  if (model == nullptr) return nullptr;
  guarded(model->load_error, 0, [&] {
    const int wanted = threads > 0 ? threads : static_cast<int>(weft::available_cores());
    model->ops = weft::ops::make_inference_registry();
    model->device = weft::c_interface::make_inference_device(model->ops, wanted);
    model->engine = std::make_unique<weft::engine::Engine>(weft::engine::read_model(path == nullptr ? "" : path),
                                                           model->ops, *model->device);
    return 0;
  });
  return model;
}

void weft_free(weft_model* model) { delete model; }

const char* weft_model_error(const weft_model* model) {
  if (model == nullptr) return "out of memory";
  const char* const text = model->call_errors.get();
  return text != nullptr ? text : model->load_error.get();
}

int weft_count(const weft_model* model, enum weft_side side) {
  if (model == nullptr || model->engine == nullptr) return 0;
  const weft::engine::DeployedModel& deployed = model->engine->model();
  return static_cast<int>((side == WEFT_INPUT ? deployed.inputs : deployed.outputs).size());
}

int weft_describe(weft_model* model, enum weft_side side, int index, int64_t batch, weft_tensor_info* info) {
  if (model == nullptr || model->engine == nullptr) return -1;
  return guarded(model->call_errors, -1, [&] {
    const weft::engine::Engine& engine = *model->engine;
    const auto& ports = side == WEFT_INPUT ? engine.model().inputs : engine.model().outputs;
    const size_t place = place_of(ports, index, side == WEFT_INPUT ? "input" : "output");
    const weft::TensorType type =
        side == WEFT_INPUT ? engine.input_type(place, batch) : engine.output_type(place, batch);
    const int rank = type.shape.rank();
    if (rank > 8) fail(ErrorKind::usage, "'{}' has {} dimensions, of which 8 have a place", ports[place].name, rank);
    *info = {ports[place].name.c_str(), name_of_dtype(type.dtype), rank, {}, type.bytes()};
    for (int axis = 0; axis < rank; ++axis) info->shape[axis] = type.shape[axis];
    return 0;
  });
}

const char* weft_class_name(const weft_model* model, int64_t index) {
  if (model == nullptr || model->engine == nullptr) return nullptr;
  const std::vector<std::string>& classes = model->engine->model().classes;
  const bool is_known = index >= 0 && static_cast<size_t>(index) < classes.size();
  return is_known ? classes[static_cast<size_t>(index)].c_str() : nullptr;
}

const char* weft_metadata(const weft_model* model, const char* key) {
  if (model == nullptr || model->engine == nullptr || key == nullptr) return nullptr;
  const auto& metadata = model->engine->model().metadata;
  const auto found = metadata.find(key);
  return found == metadata.end() ? nullptr : found->second.c_str();
}

weft_stream* weft_open_stream(weft_model* model) {
  auto* stream = new (std::nothrow) weft_stream;
  if (stream == nullptr || model == nullptr) {
    delete stream;
    return nullptr;
  }
  stream->model = model;
  guarded(stream->error, 0, [&] {
    if (model->engine != nullptr)
      stream->stream = std::make_unique<weft::engine::Stream>(*model->engine);
    else
      stream->error.set(model->load_error.get());
    return 0;
  });
  return stream;
}

void weft_close_stream(weft_stream* stream) { delete stream; }

const char* weft_stream_error(const weft_stream* stream) {
  return stream == nullptr ? "out of memory" : stream->error.get();
}

int weft_set_input(weft_stream* stream, int index, const void* data) {
  if (stream == nullptr) return -1;
  return guarded(stream->error, -1, [&] {
    weft::engine::Stream& own = stream_of(*stream);
    own.set_input(place_of(own.engine().model().inputs, index, "input"), data);
    return 0;
  });
}

int weft_set_picture(weft_stream* stream, int64_t row, const char* path) {
  if (stream == nullptr) return -1;
  return guarded(stream->error, -1, [&] {
    set_picture(*stream, row, path == nullptr ? "" : path);
    return 0;
  });
}

int weft_run(weft_stream* stream, int64_t batch) {
  if (stream == nullptr) return -1;
  return guarded(stream->error, -1, [&] {
    weft::engine::Stream& own = stream_of(*stream);
    stream->outputs.clear();
    check_pictures(*stream, own, batch);
    own.run(batch);
    stream->error.clear();
    return 0;
  });
}

int weft_get_output(weft_stream* stream, int index, void* to, size_t bytes) {
  if (stream == nullptr) return -1;
  return guarded(stream->error, -1, [&] {
    weft::engine::Stream& own = stream_of(*stream);
    own.read_output(place_of(own.engine().model().outputs, index, "output"), {static_cast<std::byte*>(to), bytes});
    return 0;
  });
}

int64_t weft_best(weft_stream* stream, int index, int64_t row) {
  if (stream == nullptr) return -1;
  return guarded(stream->error, int64_t{-1}, [&] { return best(*stream, index, row); });
}

}  // extern "C"
