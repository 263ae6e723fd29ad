// The C interface of the inference library: handles, and errors that stay with them. No exception leaves it.
#include "weft/weft_infer.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/version.h"
#include "weft/c_interface/inference_device.h"
#include "weft/engine/engine.h"
#include "weft/engine/model_file.h"
#include "weft/ops/all.h"
#include "weft/tensor/element.h"

struct weft_model {
  weft::OpRegistry ops;
  std::unique_ptr<weft::Device> device;
  std::unique_ptr<weft::engine::Engine> engine;  // null: it could not be loaded
  std::mutex mutex;                              // of the error
  std::string error;                             // of the last call that failed
};

struct weft_stream {
  weft_model* model = nullptr;
  std::unique_ptr<weft::engine::Stream> stream;  // null: the model could not be loaded
  std::vector<float> pictures;                   // rows of the first input
  int64_t batch = 0;                             // of the last run
  std::string error;
};

namespace {

using weft::ErrorKind;
using weft::fail;

/// Runs `body`; what it throws becomes the error, and `failed` the answer.
template <typename Answer, typename Body>
Answer guarded(std::string& error, Answer failed, Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    error = "out of memory; choose a smaller batch";
  } catch (const std::exception& caught) {
    error = caught.what();
  } catch (...) {
    error = "internal error: an exception of no known type";
  }
  return failed;
}

const char* text_of(const std::string& error) { return error.empty() ? nullptr : error.c_str(); }

weft::engine::Stream& stream_of(weft_stream& handle) {
  if (handle.stream == nullptr) fail(ErrorKind::usage, "{}", handle.model->error);
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
  if (handle.pictures.size() < first + each) handle.pictures.resize(first + each, 0.0f);
  weft::engine::read_picture(path, *pictures, {handle.pictures.data() + first, each});
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
  const weft::Tensor output = stream.output(place);
  const int64_t rows = output.shape().rank() > 0 ? output.shape()[0] : 1;
  if (row < 0 || row >= rows || output.elements() == 0)
    fail(ErrorKind::usage, "{} is no row of the output, which has {}", row, rows);
  const int64_t width = output.elements() / rows;
  const auto value = [&](int64_t at) { return weft::load_element(output.dtype(), output.data(), row * width + at); };
  int64_t found = 0;
  for (int64_t at = 1; at < width; ++at)
    if (value(at) > value(found)) found = at;
  return found;
}

}  // namespace

extern "C" {

const char* weft_version(void) { return weft::version().data(); }

weft_model* weft_load(const char* path, int threads) {
  auto* model = new (std::nothrow) weft_model;
  if (model == nullptr) return nullptr;
  guarded(model->error, 0, [&] {
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
  return model == nullptr ? "out of memory" : text_of(model->error);
}

int weft_count(const weft_model* model, enum weft_side side) {
  if (model == nullptr || model->engine == nullptr) return 0;
  const weft::engine::DeployedModel& deployed = model->engine->model();
  return static_cast<int>((side == WEFT_INPUT ? deployed.inputs : deployed.outputs).size());
}

int weft_describe(weft_model* model, enum weft_side side, int index, int64_t batch, weft_tensor_info* info) {
  if (model == nullptr || model->engine == nullptr) return -1;
  std::string error;
  const int code = guarded(error, -1, [&] {
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
  if (code != 0) {
    const std::lock_guard lock(model->mutex);
    model->error = error;
  }
  return code;
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
      stream->error = model->error;
    return 0;
  });
  return stream;
}

void weft_close_stream(weft_stream* stream) { delete stream; }

const char* weft_stream_error(const weft_stream* stream) {
  return stream == nullptr ? "out of memory" : text_of(stream->error);
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
