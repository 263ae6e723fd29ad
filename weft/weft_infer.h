/* Runs models that `weft compile` has written, from C: link libweft_infer. For C++ there is weft_infer.hpp.
 *
 * A model is loaded once and holds the weights. A stream runs it: one thread at a time uses a stream, and several
 * streams run at the same time over the same weights. Nothing here ends the process, and nothing is kept outside models
 * and streams.
 *
 * Errors stay with the model or the stream: weft_model_error() and weft_stream_error() say what went wrong last, in one
 * sentence with the next step. A stream of a model that could not be loaded has the model's error, so that a program
 * may check once, after its last call. Texts belong to the model or the stream; they live as long as it does, those of
 * errors until its next call. */
#ifndef WEFT_INFER_H
#define WEFT_INFER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif

typedef struct weft_model weft_model;
typedef struct weft_stream weft_stream;

enum weft_side { WEFT_INPUT = 0, WEFT_OUTPUT = 1 };

/* The type of an input or output for a batch. */
typedef struct weft_tensor_info {
  const char* name;
  const char* dtype; /* "f32", "bf16", "f16", "i32", "i64", "u8", ... */
  int rank;
  int64_t shape[8]; /* row-major; shape[0] usually is the batch */
  int64_t bytes;
} weft_tensor_info;

/* Of this library: "0.1.0". */
WEFT_API const char* weft_version(void);

/* Maps the file, checks it and makes a model that runs each stream on `threads` threads; 0: all cores that the process
 * may use. For the most throughput give 1 and open a stream for each core. NULL only where memory is out; weft_free()
 * takes NULL. The model lives longer than its streams. */
WEFT_API weft_model* weft_load(const char* path, int threads);
WEFT_API void weft_free(weft_model* model);
/* Why the model could not be loaded, or what went wrong last in a call of this thread with it. NULL: nothing did. */
WEFT_API const char* weft_model_error(const weft_model* model);

/* How many inputs or outputs the model has; 0 where it could not be loaded. */
WEFT_API int weft_count(const weft_model* model, enum weft_side side);
/* What input or output `index` is with a batch of this size. 0, or -1 with an error of the model. */
WEFT_API int weft_describe(weft_model* model, enum weft_side side, int index, int64_t batch, weft_tensor_info* info);
/* The name of a class, or NULL where it has none. */
WEFT_API const char* weft_class_name(const weft_model* model, int64_t index);
/* "licence", "source", "model", ...; NULL where the file does not say. */
WEFT_API const char* weft_metadata(const weft_model* model, const char* key);

/* NULL only where memory is out; weft_close_stream() takes NULL. */
WEFT_API weft_stream* weft_open_stream(weft_model* model);
WEFT_API void weft_close_stream(weft_stream* stream);
/* NULL: all calls with this stream since the last weft_run() that went well did, too. */
WEFT_API const char* weft_stream_error(const weft_stream* stream);

/* Row-major data of the type that weft_describe() gives; the caller keeps them until the runs that read them are over.
 * 0, or -1 with an error. */
WEFT_API int weft_set_input(weft_stream* stream, int index, const void* data);
/* Reads a PNG, JPEG, PGM or PPM file, prepares it as the model was trained with, and makes it row `row` of the first
 * input; other rows that were set so stay. 0, or -1 with an error. */
WEFT_API int weft_set_picture(weft_stream* stream, int64_t row, const char* path);
/* Runs a batch of this size. The first run of a size plans it; later ones allocate nothing. 0, or -1 with an error. */
WEFT_API int weft_run(weft_stream* stream, int64_t batch);
/* Copies output `index` of the last run, `bytes` bytes as weft_describe() gives. 0, or -1 with an error. */
WEFT_API int weft_get_output(weft_stream* stream, int index, void* to, size_t bytes);
/* The place of the largest number in row `row` of output `index` of the last run: the class, where the outputs are
 * probabilities. -1 with an error, also where numbers of the row are NaN and none is the largest. */
WEFT_API int64_t weft_best(weft_stream* stream, int index, int64_t row);

#ifdef __cplusplus
}
#endif

#endif
