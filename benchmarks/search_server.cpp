// A searcher behind standard input and output, for benchmarks/tuning.py: the first line is a space as weft::tune prints
// it, behind the name of the searcher, its seed, how many objectives there are and the population (0: its own choice).
// Then it writes a point per line, and reads its losses.
#include <cstdio>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "weft/library/library.h"
#include "weft/tune/search.h"

int main() try {
  std::string line;
  std::getline(std::cin, line);
  std::istringstream words(line);
  const weft::Library library = weft::standard_library();  // for searchers that train a network
  weft::tune::SearchOptions options;
  options.options.library = &library;
  words >> options.searcher >> options.seed >> options.options.objectives >> options.options.population;
  std::string space;
  std::getline(words, space);
  weft::tune::Search search(weft::tune::parse_space(space), options);
  while (const auto asked = search.ask()) {
    std::cout << weft::tune::print_values(asked->values) << std::endl;
    if (!std::getline(std::cin, line)) return 0;
    std::istringstream numbers(line);
    std::vector<double> losses;
    for (double loss = 0; numbers >> loss;) losses.push_back(loss);
    search.tell(asked->number, std::move(losses));
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "search_server: %s\n", error.what());
  return 1;
}
