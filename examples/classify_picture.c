/* Names the class of a picture, by a model that `weft compile` has written:
 *   classify_picture model.weft picture.jpg */
#include <stdio.h>
#include <weft/weft_infer.h>

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: classify_picture MODEL.weft PICTURE\n");
    return 2;
  }
  weft_model* model = weft_load(argv[1], 0); /* on all cores */
  weft_stream* stream = weft_open_stream(model);
  int64_t best = -1;
  if (weft_set_picture(stream, 0, argv[2]) == 0 && weft_run(stream, 1) == 0) best = weft_best(stream, 0, 0);
  if (best >= 0) {
    const char* name = weft_class_name(model, best);
    printf("%s: class %lld, %s\n", argv[2], (long long)best, name != NULL ? name : "which has no name");
  } else {
    fprintf(stderr, "classify_picture: %s\n", weft_stream_error(stream));
  }
  weft_close_stream(stream);
  weft_free(model);
  return best >= 0 ? 0 : 1;
}
