#include "weft/base/seal.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/error_of.h"

namespace weft {
namespace {

using nlohmann::json;

json sealed() {
  json root = {{"step", 7}, {"loss", 0.1}, {"names", {"a", "b\n"}}, {"empty", nullptr}};
  add_seal(root);
  return root;
}

TEST(Seal, HoldsAfterPrintingAndParsing) {
  EXPECT_TRUE(check_seal(json::parse(sealed().dump(3)), "f.json"));
  EXPECT_FALSE(check_seal({{"step", 7}}, "f.json")) << "has none";
}

TEST(Seal, ABrokenOneIsAnError) {
  json root = sealed();
  root["step"] = 8;
  EXPECT_EQ(test::error_of([&] { check_seal(root, "f.json"); }, ErrorKind::data),
            "'f.json' is damaged: its content is not what weft wrote there, by its checksum; put the original back");
}

TEST(Seal, NoFlippedBitGivesAnotherContent) {
  const std::string text = sealed().dump(1);
  const json whole = json::parse(text);
  int refused = 0;
  for (size_t at = 0; at < text.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      const json root = json::parse(flipped, nullptr, /*allow_exceptions=*/false);
      if (root.is_discarded()) continue;
      const std::string error = test::error_of([&] { check_seal(root, "f"); });
      if (error != "no error") {
        ++refused;
        continue;
      }
      json content = root, expected = whole;
      if (!root.contains("checksum")) continue;  // read like a file of an older weft, with a line that says so
      EXPECT_EQ(content, expected) << flipped;
    }
  EXPECT_GT(refused, 100);
}

TEST(Seal, BytesThatAreNoTextAreSealedAsTheyWillBeRead) {
  json root = {{"name", "caf\xe9"}};
  add_seal(root);
  EXPECT_TRUE(check_seal(json::parse(root.dump(-1, ' ', false, json::error_handler_t::replace)), "f"));
}

TEST(Seal, OfATextIsItsLastLine) {
  const std::string text = with_seal("a = 1\nb = 2\n");
  EXPECT_TRUE(check_text_seal(text, "f.toml"));
  EXPECT_EQ(without_seal(text), "a = 1\nb = 2\n");
  EXPECT_FALSE(check_text_seal("a = 1\n", "f.toml"));
  std::string changed = text;
  changed[4] = '7';
  EXPECT_NE(test::error_of([&] { check_text_seal(changed, "f.toml"); }).find("'f.toml' is damaged"), std::string::npos);
}

}  // namespace
}  // namespace weft
