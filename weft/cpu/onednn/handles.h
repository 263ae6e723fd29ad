// Owners for oneDNN's C handles, and the engine and stream that a kernel runs on.
#pragma once

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <memory>

#include "weft/base/error.h"

namespace weft::onednn {

template <auto destroy>
struct Destroy {
  template <typename T>
  void operator()(T* handle) const {
    destroy(handle);
  }
};
using EngineHandle = std::unique_ptr<dnnl_engine, Destroy<dnnl_engine_destroy>>;
using StreamHandle = std::unique_ptr<dnnl_stream, Destroy<dnnl_stream_destroy>>;
using MemoryHandle = std::unique_ptr<dnnl_memory, Destroy<dnnl_memory_destroy>>;
using PrimitiveHandle = std::unique_ptr<dnnl_primitive, Destroy<dnnl_primitive_destroy>>;
using PrimitiveDescHandle = std::unique_ptr<dnnl_primitive_desc, Destroy<dnnl_primitive_desc_destroy>>;
using AttributesHandle = std::unique_ptr<dnnl_primitive_attr, Destroy<dnnl_primitive_attr_destroy>>;

/// For calls that fail only where weft misuses oneDNN or memory is out.
inline void require(dnnl_status_t status, const char* call) {
  if (status != dnnl_success)
    fail(ErrorKind::internal,
         "internal error: oneDNN's {} returned status {}; please report this with the command you ran", call,
         static_cast<int>(status));
}

/// The CPU engine with its in-order stream.
class Engine {
 public:
  Engine() {
    dnnl_engine_t engine = nullptr;
    require(dnnl_engine_create(&engine, dnnl_cpu, 0), "dnnl_engine_create");
    engine_.reset(engine);
    dnnl_stream_t stream = nullptr;
    require(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "dnnl_stream_create");
    stream_.reset(stream);
  }
  dnnl_engine_t get() const { return engine_.get(); }
  dnnl_stream_t stream() const { return stream_.get(); }

 private:
  EngineHandle engine_;
  StreamHandle stream_;
};

/// oneDNN takes its thread count from OpenMP's setting of the calling thread, both when it plans and when it runs.
class ThreadScope {
 public:
  explicit ThreadScope(int threads) : previous_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~ThreadScope() { omp_set_num_threads(previous_); }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int previous_;
};

}  // namespace weft::onednn
