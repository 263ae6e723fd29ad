// The orientation in EXIF data, and pictures turned upright by it.
#include "weft/data/pictures/orientation.h"

#include <string>

#include "tests/data/idx_bytes.h"
#include "tests/support/jpeg_for_tests.h"
#include "weft/data/open_dataset.h"

namespace weft::data {
namespace {

int orientation_of(const std::string& segment) {
  return exif_orientation({reinterpret_cast<const uint8_t*>(segment.data()), segment.size()});
}

TEST(Orientation, IsReadInEitherOrderOfBytes) {
  for (int orientation = 1; orientation <= 8; ++orientation)
    for (const bool little : {true, false})
      EXPECT_EQ(orientation_of(cli_tests::exif_segment(orientation, little)), orientation);
}

TEST(Orientation, OfDamagedOrOtherDataIsUpright) {
  EXPECT_EQ(orientation_of(""), 1);
  EXPECT_EQ(orientation_of("http://ns.adobe.com/xap/1.0/"), 1);
  EXPECT_EQ(orientation_of(cli_tests::exif_segment(9)), 1);
  EXPECT_EQ(orientation_of(cli_tests::exif_segment(0)), 1);
  const std::string whole = cli_tests::exif_segment(6);
  for (size_t length = 0; length < 24; ++length) EXPECT_EQ(orientation_of(whole.substr(0, length)), 1) << length;
  std::string far = whole;
  far[10] = '\x7f';  // the directory lies behind the end
  EXPECT_EQ(orientation_of(far), 1);
}

std::string chunk(const std::string& name, const std::string& content) {
  std::string bytes(4, '\0');
  for (size_t byte = 0; byte < 4; ++byte) bytes[byte] = static_cast<char>(content.size() >> (24 - 8 * byte));
  return bytes + name + content + "sum.";
}

int png_orientation_of(const std::string& file) {
  return png_orientation({reinterpret_cast<const uint8_t*>(file.data()), file.size()});
}

TEST(Orientation, OfAPngStandsInAChunkOfItsOwn) {
  const std::string begin = std::string(8, 'P') + chunk("IHDR", std::string(13, '\0'));
  const std::string exif = chunk("eXIf", cli_tests::exif_segment(6).substr(6)), pixels = chunk("IDAT", "pixels");
  EXPECT_EQ(png_orientation_of(begin + exif + pixels), 6);
  EXPECT_EQ(png_orientation_of(begin + pixels + exif), 6);
  EXPECT_EQ(png_orientation_of(begin + pixels), 1);
}

TEST(Orientation, OfADamagedPngIsUpright) {
  const std::string whole = std::string(8, 'P') + chunk("eXIf", cli_tests::exif_segment(6).substr(6));
  for (size_t length = 0; length < whole.size(); ++length) EXPECT_EQ(png_orientation_of(whole.substr(0, length)), 1);
  std::string far = whole;
  far[8] = '\x7f';
  EXPECT_EQ(png_orientation_of(far), 1);
}

/// Two rows of three pixels: 1 2 3 and 4 5 6.
Image stored() { return {1, 2, 3, {1, 2, 3, 4, 5, 6}}; }

TEST(Orientation, OfAllEightKinds) {
  // What the standard calls row 0 and column 0: the visual top and left of the scene.
  const std::pair<int64_t, Bytes> wanted[] = {{2, {1, 2, 3, 4, 5, 6}},   // as it is
                                              {2, {3, 2, 1, 6, 5, 4}},   // mirrored
                                              {2, {6, 5, 4, 3, 2, 1}},   // upside down
                                              {2, {4, 5, 6, 1, 2, 3}},   // upside down and mirrored
                                              {3, {1, 4, 2, 5, 3, 6}},   // rows are columns
                                              {3, {4, 1, 5, 2, 6, 3}},   // to be turned right
                                              {3, {6, 3, 5, 2, 4, 1}},   // both, turned around
                                              {3, {3, 6, 2, 5, 1, 4}}};  // to be turned left
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Image turned = upright(stored(), orientation);
    const auto& [height, pixels] = wanted[orientation - 1];
    EXPECT_EQ(turned.height, height) << orientation;
    EXPECT_EQ(turned.pixels, pixels) << orientation;
  }
}

TEST(Orientation, TurnsEveryChannel) {
  const Image turned = upright({3, 1, 2, {1, 2, 3, 4, 5, 6}}, 2);
  EXPECT_EQ(turned.pixels, (Bytes{2, 1, 4, 3, 6, 5}));
}

class OrientedJpeg : public FilesTest {
 protected:
  /// Dark on the left, bright on the right, 32 pixels wide and 16 high as it is stored.
  std::string write_jpeg(const std::string& name, int orientation) {
    Bytes pixels;
    for (int y = 0; y < 16; ++y)
      for (int x = 0; x < 32; ++x) pixels.push_back(x < 16 ? 20 : 220);
    const std::string file = cli_tests::jpeg_of(32, 16, 1, pixels.data(), cli_tests::exif_segment(orientation));
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    return write(name, Bytes(file.begin(), file.end()));
  }
};

TEST_F(OrientedJpeg, IsReadUpright) {
  const Image image = read_image(write_jpeg("a.jpg", 6));  // to be turned right: dark at the top
  EXPECT_EQ(image.height, 32);
  EXPECT_EQ(image.width, 16);
  EXPECT_LT(image.pixels.front(), 60);
  EXPECT_GT(image.pixels.back(), 180);
}

TEST_F(OrientedJpeg, IsReadUprightWhereItIsMadeSmaller) {
  const Image image = read_image(write_jpeg("a.jpg", 8), 4);  // to be turned left: bright at the top
  EXPECT_EQ(image.height, 8);
  EXPECT_EQ(image.width, 4);
  EXPECT_GT(image.pixels.front(), 180);
  EXPECT_LT(image.pixels.back(), 60);
}

TEST_F(OrientedJpeg, IsReadUprightInAFolder) {
  for (const char* name : {"a/1.jpg", "b/1.jpg"}) write_jpeg(name, 6);
  for (const char* decode : {"scaled", "exact"}) {
    const auto dataset =
        open_dataset("images:" + path("") + "?size=8&resize=8&channels=1&split=0&decode=" + decode, Split::train);
    const auto picture = dataset->picture(0);
    EXPECT_EQ(picture->height, 16);
    EXPECT_LT(picture->pixels.front(), 60);
    EXPECT_GT(picture->pixels.back(), 180);
  }
}

}  // namespace
}  // namespace weft::data
