// Runs models that `weft compile` has written, from C++ (17 or newer): link libweft_infer. Errors are
// std::runtime_error. This is all on top of the C interface, so that any compiler may use the library (weft_infer.h
// says what each call does).
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weft/weft_infer.h"

namespace weft_infer {

struct TensorInfo {
  std::string name, dtype;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
};

class Model {
 public:
  /// `threads` of each stream; 0: all cores.
  explicit Model(const std::string& path, int threads = 0) : handle_(weft_load(path.c_str(), threads), weft_free) {
    check(weft_model_error(get()));
  }

  int inputs() const { return weft_count(get(), WEFT_INPUT); }
  int outputs() const { return weft_count(get(), WEFT_OUTPUT); }
  TensorInfo input(int index, int64_t batch = 1) { return describe(WEFT_INPUT, index, batch); }
  TensorInfo output(int index, int64_t batch = 1) { return describe(WEFT_OUTPUT, index, batch); }
  /// Empty: it has none.
  std::string class_name(int64_t index) const { return text(weft_class_name(get(), index)); }
  std::string metadata(const std::string& key) const { return text(weft_metadata(get(), key.c_str())); }

  weft_model* get() const { return handle_.get(); }
  static void check(const char* error) {
    if (error != nullptr) throw std::runtime_error(error);
  }

 private:
  static std::string text(const char* text) { return text == nullptr ? std::string() : std::string(text); }
  TensorInfo describe(weft_side side, int index, int64_t batch) {
    weft_tensor_info info;
    if (weft_describe(get(), side, index, batch, &info) != 0) check(weft_model_error(get()));
    return {info.name, info.dtype, {info.shape, info.shape + info.rank}, info.bytes};
  }

  std::shared_ptr<weft_model> handle_;
};

/// One thread at a time uses it. Keeps the model.
class Stream {
 public:
  explicit Stream(Model model) : model_(std::move(model)), handle_(weft_open_stream(model_.get()), weft_close_stream) {
    Model::check(weft_stream_error(handle_.get()));
  }

  /// The caller keeps the data until the runs that read them are over.
  void set_input(int index, const void* data) { require(weft_set_input(handle_.get(), index, data)); }
  void set_picture(int64_t row, const std::string& path) {
    require(weft_set_picture(handle_.get(), row, path.c_str()));
  }
  void run(int64_t batch = 1) {
    require(weft_run(handle_.get(), batch));
    batch_ = batch;
  }
  /// Of the last run; T is the output's type.
  template <typename T = float>
  std::vector<T> output(int index) {
    std::vector<T> numbers(static_cast<size_t>(model_.output(index, batch_).bytes) / sizeof(T));
    require(weft_get_output(handle_.get(), index, numbers.data(), numbers.size() * sizeof(T)));
    return numbers;
  }
  int64_t best(int index, int64_t row = 0) {
    const int64_t place = weft_best(handle_.get(), index, row);
    require(place < 0 ? -1 : 0);
    return place;
  }

 private:
  void require(int code) const {
    if (code != 0) Model::check(weft_stream_error(handle_.get()));
  }

  Model model_;
  std::unique_ptr<weft_stream, void (*)(weft_stream*)> handle_;
  int64_t batch_ = 1;
};

}  // namespace weft_infer
