#include "weft/weft_infer.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <thread>

#include "tests/engine/small_model.h"
#include "tests/support/files_for_tests.h"
#include "weft/data/pictures/image.h"
#include "weft/engine/model_file.h"
#include "weft/weft_infer.hpp"

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using weft::test::small_model;

class WeftInfer : public weft::FilesTest {
 protected:
  std::string small() const {
    weft::engine::write_model(path("small.weft"), small_model());
    return path("small.weft");
  }
  /// Reads pictures of 1 x 1 pixels in two channels... as the small model has two inputs: grey pictures of 1 x 2.
  std::string of_pictures() const {
    weft::engine::DeployedModel model = small_model();
    std::string& text = model.graphs[0].text;
    const std::string from = "batch %x \"x\" : f32[N,2]\n";
    text.replace(text.find(from), from.size(),
                 "batch %image \"x\" : f32[N,1,1,2]\n  %x = reshape(%image) {shape=[N,2]} : f32[N,2]\n");
    model.inputs[0].type = "f32[N,1,1,2]";
    model.pictures = weft::engine::PictureInput{
        .channels = 1, .height = 1, .width = 2, .resize = 0, .mean = {0.0f}, .deviation = {1.0f}};
    weft::engine::write_model(path("pictures.weft"), model);
    return path("pictures.weft");
  }
};

TEST_F(WeftInfer, RunsAModel) {
  weft_model* model = weft_load(small().c_str(), 1);
  ASSERT_EQ(weft_model_error(model), nullptr);
  EXPECT_EQ(weft_count(model, WEFT_INPUT), 1);
  weft_tensor_info info;
  ASSERT_EQ(weft_describe(model, WEFT_OUTPUT, 0, 2, &info), 0);
  EXPECT_STREQ(info.name, "y");
  EXPECT_STREQ(info.dtype, "f32");
  EXPECT_EQ(info.rank, 2);
  EXPECT_EQ(info.shape[0], 2);
  EXPECT_EQ(info.bytes, 24);
  EXPECT_STREQ(weft_class_name(model, 1), "two");
  EXPECT_EQ(weft_class_name(model, 3), nullptr);
  EXPECT_STREQ(weft_metadata(model, "licence"), "CC0");

  weft_stream* stream = weft_open_stream(model);
  const float x[] = {1, 2, 3, 0};
  float y[6];
  EXPECT_EQ(weft_set_input(stream, 0, x), 0);
  EXPECT_EQ(weft_run(stream, 2), 0);
  EXPECT_EQ(weft_get_output(stream, 0, y, sizeof y), 0);
  EXPECT_THAT(y, ElementsAre(1, 5, 4, 3, 0, 6));
  EXPECT_EQ(weft_best(stream, 0, 0), 1);
  EXPECT_EQ(weft_best(stream, 0, 1), 2);
  EXPECT_EQ(weft_stream_error(stream), nullptr);
  weft_close_stream(stream);
  weft_free(model);
}

TEST_F(WeftInfer, AModelThatCannotBeLoadedSaysWhyWhereverItIsAsked) {
  weft_model* model = weft_load(path("missing.weft").c_str(), 1);
  EXPECT_THAT(weft_model_error(model), HasSubstr("missing.weft"));
  EXPECT_EQ(weft_count(model, WEFT_INPUT), 0);
  weft_stream* stream = weft_open_stream(model);
  EXPECT_EQ(weft_run(stream, 1), -1);
  EXPECT_THAT(weft_stream_error(stream), HasSubstr("missing.weft"));
  weft_close_stream(stream);
  weft_free(model);
}

TEST_F(WeftInfer, MistakesAreErrorsOfTheStream) {
  weft_model* model = weft_load(small().c_str(), 1);
  weft_stream* stream = weft_open_stream(model);
  const float x[] = {1, 2};
  float y[3];
  EXPECT_EQ(weft_set_input(stream, 1, x), -1);
  EXPECT_THAT(weft_stream_error(stream), HasSubstr("the model has 1 inputs, and none of index 1"));
  EXPECT_EQ(weft_run(stream, 1), -1);
  EXPECT_THAT(weft_stream_error(stream), HasSubstr("is not set"));
  EXPECT_EQ(weft_set_picture(stream, 0, "cat.jpg"), -1);
  EXPECT_THAT(weft_stream_error(stream), HasSubstr("does not say how pictures become its input"));
  weft_set_input(stream, 0, x);
  EXPECT_EQ(weft_run(stream, 0), -1);
  EXPECT_THAT(weft_stream_error(stream), HasSubstr("has no samples"));
  EXPECT_EQ(weft_run(stream, 1), 0);
  EXPECT_EQ(weft_stream_error(stream), nullptr);
  EXPECT_EQ(weft_get_output(stream, 0, y, 4), -1);
  EXPECT_THAT(weft_stream_error(stream), HasSubstr("takes 12 bytes"));
  EXPECT_EQ(weft_best(stream, 0, 1), -1);
  weft_close_stream(stream);
  weft_free(model);
  weft_free(nullptr);
  weft_close_stream(nullptr);
  EXPECT_NE(weft_model_error(nullptr), nullptr);
}

TEST_F(WeftInfer, PicturesArePreparedAsTheModelSays) {
  weft::data::write_png(path("a.png"), {1, 1, 2, {255, 0}});
  weft::data::write_png(path("b.png"), {1, 1, 2, {0, 255}});
  weft_infer::Model model(of_pictures(), 1);
  weft_infer::Stream stream(model);
  stream.set_picture(0, path("a.png"));
  stream.set_picture(1, path("b.png"));
  stream.run(2);
  EXPECT_THAT(stream.output(0), ElementsAre(1, 0, 2, 0, 3, 1));
  EXPECT_EQ(model.class_name(stream.best(0, 1)), "two");
}

TEST_F(WeftInfer, ABatchWithoutEnoughPicturesIsRefused) {
  weft::data::write_png(path("a.png"), {1, 1, 2, {255, 0}});
  weft_infer::Stream stream(weft_infer::Model(of_pictures(), 1));
  stream.set_picture(0, path("a.png"));
  EXPECT_THROW(stream.run(2), std::runtime_error);
}

TEST_F(WeftInfer, APictureThatCannotBeReadLeavesThoseThatWereSet) {
  weft::data::write_png(path("a.png"), {1, 1, 2, {255, 0}});
  weft_model* model = weft_load(of_pictures().c_str(), 1);
  weft_stream* stream = weft_open_stream(model);
  ASSERT_EQ(weft_set_picture(stream, 0, path("a.png").c_str()), 0);
  // So many rows that their memory would be moved.
  EXPECT_EQ(weft_set_picture(stream, 100000, path("missing.png").c_str()), -1);
  EXPECT_THAT(weft_stream_error(stream), HasSubstr("missing.png"));
  float y[3];
  ASSERT_EQ(weft_run(stream, 1), 0);
  ASSERT_EQ(weft_get_output(stream, 0, y, sizeof y), 0);
  EXPECT_THAT(y, ElementsAre(1, 0, 2));
  EXPECT_EQ(weft_run(stream, 2), -1);  // one picture is set
  weft_close_stream(stream);
  weft_free(model);
}

TEST_F(WeftInfer, ARowThatBeginsWithNaNHasNoLargestNumber) {
  weft_model* model = weft_load(small().c_str(), 1);
  weft_stream* stream = weft_open_stream(model);
  const float x[] = {std::numeric_limits<float>::quiet_NaN(), 0, 1, 2};
  ASSERT_EQ(weft_set_input(stream, 0, x), 0);
  ASSERT_EQ(weft_run(stream, 2), 0);
  float y[6];
  ASSERT_EQ(weft_get_output(stream, 0, y, sizeof y), 0);
  ASSERT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(weft_best(stream, 0, 0), -1);
  EXPECT_THAT(weft_stream_error(stream), HasSubstr("begins with a NaN"));
  EXPECT_EQ(weft_best(stream, 0, 1), 1);
  weft_close_stream(stream);
  weft_free(model);
}

TEST_F(WeftInfer, TheLargestNumberIsThatOfTheLastRun) {
  weft_infer::Stream stream(weft_infer::Model(small(), 1));
  const float first[] = {1, 2}, second[] = {3, 0};
  stream.set_input(0, first);
  stream.run(1);
  EXPECT_EQ(stream.best(0), 1);
  stream.set_input(0, second);
  stream.run(1);
  EXPECT_EQ(stream.best(0), 2);
}

TEST_F(WeftInfer, ABatchBeyondAllMemoryIsRefused) {
  weft_model* model = weft_load(small().c_str(), 1);
  weft_tensor_info info;
  EXPECT_EQ(weft_describe(model, WEFT_OUTPUT, 0, int64_t{1} << 61, &info), -1);
  EXPECT_THAT(weft_model_error(model), HasSubstr("more than any memory holds"));
  weft_free(model);
}

TEST_F(WeftInfer, AThreadReadsItsOwnErrorsOfTheModel) {
  weft_model* model = weft_load(small().c_str(), 1);
  weft_tensor_info info;
  std::vector<std::thread> threads;
  std::vector<std::string> found(4);
  for (int index = 0; index < 4; ++index)
    threads.emplace_back([&, index] {
      for (int turn = 0; turn < 200; ++turn) weft_describe(model, WEFT_INPUT, 10 + index, 1, &info);
      found[static_cast<size_t>(index)] = weft_model_error(model);
    });
  for (std::thread& thread : threads) thread.join();
  for (int index = 0; index < 4; ++index)
    EXPECT_THAT(found[static_cast<size_t>(index)], HasSubstr("none of index 1" + std::to_string(index)));
  EXPECT_EQ(weft_model_error(model), nullptr);
  weft_free(model);
}

TEST_F(WeftInfer, StreamsOfOneModelRunAtTheSameTime) {
  const weft_infer::Model model(small(), 1);
  std::vector<float> found(4, -1);
  std::vector<std::thread> threads;
  for (size_t index = 0; index < found.size(); ++index)
    threads.emplace_back([&, index] {
      weft_infer::Stream stream(model);
      const float x[] = {static_cast<float>(index), 0};
      stream.set_input(0, x);
      for (int turn = 0; turn < 20; ++turn) stream.run(1);
      found[index] = stream.output(0)[0];
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(found, ElementsAre(0, 1, 2, 3));
}

}  // namespace
