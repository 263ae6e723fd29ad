// For tools/decoding_check.py: decodes the pictures named on standard input, one on each line, as weft's data sets do,
// and writes each to standard output: "C H W\n", then its bytes in C,H,W order. "ERROR MESSAGE\n" where it cannot.
// With a number as argument a JPEG may be decoded to a smaller size whose shorter side is at least that.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "weft/base/error.h"
#include "weft/data/pictures/image.h"

int main(int count, char** arguments) {
  const int64_t shortest = count > 1 ? std::atoll(arguments[1]) : 0;
  for (std::string path; std::getline(std::cin, path);) try {
      const weft::data::Image image = weft::data::read_image(path, shortest);
      std::cout << image.channels << ' ' << image.height << ' ' << image.width << '\n';
      std::cout.write(reinterpret_cast<const char*>(image.pixels.data()),
                      static_cast<std::streamsize>(image.pixels.size()));
    } catch (const weft::Error& error) {
      std::cout << "ERROR " << error.what() << '\n';
    }
  return std::cout.flush() ? 0 : 1;
}
