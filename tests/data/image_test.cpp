#include "weft/data/pictures/image.h"

#include <png.h>
#include <zlib.h>

#include <cstdlib>

#include "tests/data/idx_bytes.h"
#include "tests/support/jpeg_for_tests.h"

namespace weft::data {
namespace {

class ImageTest : public FilesTest {
 protected:
  /// `interleaved` is RGB (3 channels) or grey, one byte each.
  std::string write_png(const std::string& name, uint32_t width, uint32_t height, uint32_t format,
                        const Bytes& interleaved) {
    png_image png{};
    png.version = PNG_IMAGE_VERSION;
    png.width = width;
    png.height = height;
    png.format = format;
    EXPECT_NE(png_image_write_to_file(&png, path(name).c_str(), 0, interleaved.data(), 0, nullptr), 0) << png.message;
    return path(name);
  }

  std::string write_jpeg(const std::string& name, uint32_t width, uint32_t height, int channels,
                         const Bytes& interleaved) {
    const std::string file = cli_tests::jpeg_of(width, height, channels, interleaved.data());
    return write(name, Bytes(file.begin(), file.end()));
  }

  void truncate(const std::string& file, size_t bytes) { std::filesystem::resize_file(file, bytes); }
  size_t size_of(const std::string& file) { return std::filesystem::file_size(file); }
};

const Bytes kRedGreen{255, 0, 0, 0, 255, 0};  // two RGB pixels
Bytes bytes_of(const std::string& text) { return Bytes(text.begin(), text.end()); }

TEST_F(ImageTest, ReadsColourPng) {
  const Image image = read_image(write_png("a.png", 2, 1, PNG_FORMAT_RGB, kRedGreen));
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(image.width, 2);
  EXPECT_EQ(image.height, 1);
  EXPECT_EQ(image.pixels, (Bytes{255, 0, 0, 255, 0, 0}));  // planes: red, green, blue
}

TEST_F(ImageTest, ReadsGreyPng) {
  const Image image = read_image(write_png("a.png", 3, 2, PNG_FORMAT_GRAY, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(image.channels, 1);
  EXPECT_EQ(image.pixels, (Bytes{1, 2, 3, 4, 5, 6}));
}

TEST_F(ImageTest, LaysTransparentPixelsOnBlack) {
  const Image image = read_image(write_png("a.png", 2, 1, PNG_FORMAT_RGBA, {255, 255, 255, 0, 200, 100, 50, 255}));
  EXPECT_EQ(image.pixels, (Bytes{0, 200, 0, 100, 0, 50}));
}

TEST_F(ImageTest, ReadsColourJpeg) {
  Bytes blue;
  for (int pixel = 0; pixel < 16 * 16; ++pixel) blue.insert(blue.end(), {10, 20, 200});
  const Image image = read_image(write_jpeg("a.jpg", 16, 16, 3, blue));
  ASSERT_EQ(image.pixels.size(), 3u * 256);
  EXPECT_EQ(image.channels, 3);
  EXPECT_NEAR(image.pixels[0], 10, 3);
  EXPECT_NEAR(image.pixels[256 + 100], 20, 3);
  EXPECT_NEAR(image.pixels[512 + 255], 200, 3);
}

TEST_F(ImageTest, ReadsGreyJpeg) {
  const Image image = read_image(write_jpeg("a.jpg", 8, 4, 1, Bytes(32, 77)));
  EXPECT_EQ(image.channels, 1);
  EXPECT_EQ(image.width, 8);
  EXPECT_EQ(image.height, 4);
  EXPECT_NEAR(image.pixels[31], 77, 1);
}

TEST_F(ImageTest, ReadsPgmWithCommentAndSmallerRange) {
  const Image image = read_image(write("a.pgm", bytes_of("P5 # grey\n2 1\n100\n\x32\x64")));
  EXPECT_EQ(image.pixels, (Bytes{128, 255}));  // 50 and 100 of 100
}

TEST_F(ImageTest, ReadsPpm) {
  Bytes file = bytes_of("P6\n2 1\n255\n");
  file.insert(file.end(), kRedGreen.begin(), kRedGreen.end());
  EXPECT_EQ(read_image(write("a.ppm", file)).pixels, (Bytes{255, 0, 0, 255, 0, 0}));
}

TEST_F(ImageTest, MissingFile) {
  expect_error([&] { read_image(path("none.png")); }, ErrorKind::io, {"none.png", "No such file"});
}

TEST_F(ImageTest, EmptyFile) {
  expect_error([&] { read_image(write("a.png", {})); }, ErrorKind::data, {"is empty"});
}

TEST_F(ImageTest, AnotherKindOfFile) {
  expect_error([&] { read_image(write("a.png", bytes_of("hello, world"))); }, ErrorKind::data,
               {"none of PNG, JPEG, PGM"});
}

TEST_F(ImageTest, TruncatedPng) {
  const std::string file = write_png("a.png", 64, 64, PNG_FORMAT_GRAY, counting_bytes(4096));
  truncate(file, size_of(file) / 2);
  expect_error([&] { read_image(file); }, ErrorKind::data, {"a.png", "PNG"});
}

TEST_F(ImageTest, PngWithOnlyItsMagic) {
  const std::string file = write_png("a.png", 2, 1, PNG_FORMAT_RGB, kRedGreen);
  truncate(file, 10);
  expect_error([&] { read_image(file); }, ErrorKind::data, {"damaged PNG"});
}

TEST_F(ImageTest, TruncatedJpeg) {
  const std::string file = write_jpeg("a.jpg", 64, 64, 1, counting_bytes(4096));
  truncate(file, size_of(file) * 2 / 3);
  expect_error([&] { read_image(file); }, ErrorKind::data, {"a.jpg", "truncated"});
}

TEST_F(ImageTest, JpegWithoutPicture) {
  const std::string file = write_jpeg("a.jpg", 8, 8, 1, Bytes(64, 1));
  truncate(file, 30);
  expect_error([&] { read_image(file); }, ErrorKind::data, {"a.jpg", "damaged"});
}

TEST_F(ImageTest, JpegOfFourInksBecomesRgb) {
  Bytes inks;
  for (int pixel = 0; pixel < 64; ++pixel) inks.insert(inks.end(), {0, 128, 255, 51});  // cyan, magenta, yellow, black
  const Image image = read_image(write_jpeg("a.jpg", 8, 8, 4, inks));
  EXPECT_EQ(image.channels, 3);
  // libjpeg marks what it writes as Adobe's, which counts light: 0 ink is 255.
  EXPECT_NEAR(image.pixels[0], 0, 3);
  EXPECT_NEAR(image.pixels[64], 128 * 51 / 255, 3);
  EXPECT_NEAR(image.pixels[128], 51, 3);
}

TEST_F(ImageTest, JpegIsDecodedNoLargerThanNeeded) {
  Bytes gradient;
  for (int y = 0; y < 64; ++y)
    for (int x = 0; x < 96; ++x) gradient.push_back(static_cast<uint8_t>(2 * x));
  const std::string file = write_jpeg("a.jpg", 96, 64, 1, gradient);
  const Image half = read_image(file, 32), more = read_image(file, 33), all = read_image(file, 100);
  EXPECT_EQ(std::pair(half.height, half.width), (std::pair<int64_t, int64_t>{32, 48}));
  EXPECT_EQ(std::pair(more.height, more.width), (std::pair<int64_t, int64_t>{40, 60}));
  EXPECT_EQ(std::pair(all.height, all.width), (std::pair<int64_t, int64_t>{64, 96}));
  EXPECT_NEAR(half.pixels[24], 4 * 24 + 1, 2);
}

TEST_F(ImageTest, PngIsReadAsItWasWritten) {
  for (const int64_t channels : {1, 3}) {
    Image image{channels, 3, 5, {}};
    for (int64_t at = 0; at < channels * 15; ++at) image.pixels.push_back(static_cast<uint8_t>(at * 5));
    data::write_png(path("a.png"), image);
    const Image again = read_image(path("a.png"));
    EXPECT_EQ(again.channels, channels);
    EXPECT_EQ(again.pixels, image.pixels);
  }
  expect_error([&] { data::write_png(path("none/a.png"), {1, 1, 1, {0}}); }, ErrorKind::io, {"none"});
}

TEST_F(ImageTest, JpegIsReadAsItWasEncoded) {
  for (const int64_t channels : {1, 3}) {
    Image image{channels, 32, 48, {}};
    for (int64_t at = 0; at < channels * 32 * 48; ++at)
      image.pixels.push_back(static_cast<uint8_t>(40 + at % 48 * 3 + at / 48 % 32));
    const std::vector<uint8_t> fine = encode_jpeg(image, 95), coarse = encode_jpeg(image, 30);
    EXPECT_LT(coarse.size(), fine.size());
    const Image again = decode_image("x", fine);
    ASSERT_EQ(again.pixels.size(), image.pixels.size());
    for (size_t at = 0; at < image.pixels.size(); ++at) ASSERT_NEAR(again.pixels[at], image.pixels[at], 4) << at;
  }
}

TEST_F(ImageTest, APictureTooLongForJpegIsAnError) {
  const Image image{1, 1, 70'000, std::vector<uint8_t>(70'000)};
  expect_error([&] { encode_jpeg(image, 90); }, ErrorKind::data, {"70000x1 pixels cannot become a JPEG file"});
}

TEST_F(ImageTest, ResizesByTheShorterSide) {
  const Image wide{1, 20, 30, Bytes(600, 7)}, high{1, 30, 20, Bytes(600, 7)};
  EXPECT_EQ(resize_shorter(wide, 10).width, 15);
  EXPECT_EQ(resize_shorter(high, 10).height, 15);
}

TEST_F(ImageTest, CopiesTheMiddle) {
  Image image{1, 3, 4, {}};
  for (uint8_t at = 0; at < 12; ++at) image.pixels.push_back(at);
  Bytes middle(2);
  copy_middle(image, 1, 2, middle);
  EXPECT_EQ(middle, (Bytes{5, 6}));
}

TEST_F(ImageTest, AbsurdDimensions) {
  expect_error([&] { read_image(write("a.pgm", bytes_of("P5 999999999 999999999 255\n"))); }, ErrorKind::data,
               {"999999999x999999999", "64 megapixels"});
}

TEST_F(ImageTest, NoPixels) {
  expect_error([&] { read_image(write("a.pgm", bytes_of("P5 0 3 255\n"))); }, ErrorKind::data, {"no pixels (0x3)"});
}

TEST_F(ImageTest, TruncatedPgm) {
  expect_error([&] { read_image(write("a.pgm", bytes_of("P5 2 2 255\nabc"))); }, ErrorKind::data,
               {"truncated", "4 bytes", "3 follow"});
}

TEST_F(ImageTest, PgmWithoutHeight) {
  expect_error([&] { read_image(write("a.pgm", bytes_of("P5 2"))); }, ErrorKind::data, {"has no height"});
}

TEST_F(ImageTest, PgmOfSixteenBits) {
  expect_error([&] { read_image(write("a.pgm", bytes_of("P5 1 1 65535\nab"))); }, ErrorKind::data, {"up to 65535"});
}

TEST(Resize, ToItsOwnSizeChangesNothing) {
  const Image image{1, 2, 3, {10, 20, 30, 40, 50, 60}};
  EXPECT_EQ(resize(image, 2, 3).pixels, image.pixels);
}

TEST(Resize, EnlargesByInterpolation) {
  // Centres of 4 targets over 2 sources lie at 0.25, 0.75, 1.25, 1.75: weights 3/4 and 1/4 between them.
  const Image image{1, 1, 2, {0, 100}};
  EXPECT_EQ(resize(image, 1, 4).pixels, (Bytes{0, 25, 75, 100}));
}

TEST(Resize, ShrinksByAveraging) {
  // Each target spans a triangle of half-width 2 over 4 sources: weights 3/7, 3/7, 1/7 at the border.
  const Image image{1, 1, 4, {0, 70, 140, 210}};
  EXPECT_EQ(resize(image, 1, 2).pixels, (Bytes{50, 160}));
}

TEST(Resize, TreatsChannelsAndBothAxes) {
  const Image image{2, 2, 2, {0, 0, 100, 100, 8, 8, 8, 8}};
  const Image resized = resize(image, 1, 1);
  EXPECT_EQ(resized.pixels, (Bytes{50, 8}));
}

TEST(WithChannels, GreyBecomesThreeEqualChannels) {
  EXPECT_EQ(with_channels({1, 1, 2, {3, 4}}, 3).pixels, (Bytes{3, 4, 3, 4, 3, 4}));
}

TEST(WithChannels, ColourBecomesLuma) {
  EXPECT_EQ(with_channels({3, 1, 3, {255, 0, 0, 0, 255, 0, 0, 0, 255}}, 1).pixels, (Bytes{76, 150, 29}));
}

TEST(WithChannels, OtherCountsAreAnError) {
  expect_error([] { with_channels({3, 1, 1, {1, 2, 3}}, 4); }, ErrorKind::shape, {"3 channels cannot become 4"});
}

TEST(Fit, GivesTheShapeOfTheModel) {
  const Image image = fit({3, 4, 4, Bytes(48, 9)}, Shape{1, 2, 3});
  EXPECT_EQ(image.channels, 1);
  EXPECT_EQ(image.height, 2);
  EXPECT_EQ(image.width, 3);
  EXPECT_EQ(image.pixels, Bytes(6, 9));
}

/// A grey PNG of 16 bits that says nothing of its gamma; libpng's own simple writer would say that it is linear.
Bytes grey_png_of_16_bits(const std::vector<uint16_t>& values) {
  const auto big_endian = [](Bytes& out, uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<uint8_t>(value >> shift));
  };
  Bytes png = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  const auto chunk = [&](const char* name, const Bytes& content) {
    big_endian(png, static_cast<uint32_t>(content.size()));
    const size_t begin = png.size();
    png.insert(png.end(), name, name + 4);
    png.insert(png.end(), content.begin(), content.end());
    big_endian(png, static_cast<uint32_t>(crc32(0, png.data() + begin, static_cast<unsigned>(png.size() - begin))));
  };
  Bytes header;
  big_endian(header, static_cast<uint32_t>(values.size()));
  big_endian(header, 1);
  header.insert(header.end(), {16, 0, 0, 0, 0});  // bits, grey, the only ways to compress, filter and interlace
  Bytes line = {0};                               // no filter
  for (const uint16_t value : values)
    line.insert(line.end(), {static_cast<uint8_t>(value >> 8), uint8_t(value & 0xff)});
  Bytes packed(compressBound(line.size()));
  uLongf size = packed.size();
  EXPECT_EQ(compress(packed.data(), &size, line.data(), line.size()), Z_OK);
  packed.resize(size);
  chunk("IHDR", header);
  chunk("IDAT", packed);
  chunk("IEND", {});
  return png;
}

TEST_F(ImageTest, SixteenBitsBecomeEightAlongALine) {
  const std::string file = write("grey.png", grey_png_of_16_bits({0, 1000, 16384, 32768, 49152, 65535}));
  EXPECT_EQ(read_image(file).pixels, (Bytes{0, 4, 64, 128, 191, 255}));  // v / 257, as Pillow, OpenCV and ImageMagick
}

TEST_F(ImageTest, AStripIsCutToItsMiddleBeforeItGrows) {
  Image strip{1, 1, 100'000, {}};
  strip.pixels.resize(100'000, 10);
  for (int64_t x = 49'992; x < 50'008; ++x) strip.pixels[static_cast<size_t>(x)] = 200;
  const Image grown = resize_shorter(strip, 147);
  EXPECT_EQ(grown.height, 147);
  EXPECT_EQ(grown.width, 16 * 147);
  EXPECT_EQ(grown.pixels, Bytes(grown.pixels.size(), 200));
  const Image upright{1, 32, 2, Bytes(64, 7)};
  EXPECT_EQ(resize_shorter(upright, 4).height, 64) << "16 to 1 is kept";
}

TEST_F(ImageTest, ResizingALongStripTakesLittleMemory) {
  Image strip{1, 400'000, 1, {}};
  strip.pixels.resize(400'000, 10);
  EXPECT_EQ(resize(strip, 2, 4096).pixels, Bytes(2 * 4096, 10));  // 6.5 GB were it widened first
}

}  // namespace
}  // namespace weft::data
