// The pieces of pages in one file: HTML with its style and its pictures inside, readable in the dark, too.
#pragma once

#include <string>

#include "weft/base/table.h"
#include "weft/plot/figure.h"

namespace weft::report {

/// The whole document. `title` is any text, `by` what made it: "weft explain"; `body` is HTML, as what follows gives
/// it.
std::string html_page(const std::string& title, const std::string& by, const std::string& body);

/// With a heading, and an id for links.
std::string section(const char* id, const char* title, const std::string& content);
/// Of any text, whose lines stay; empty for an empty one.
std::string paragraph(std::string text);
std::string scrolled(const Table& table);
/// An SVG document as an element, with words for those who cannot see it.
std::string picture(std::string svg, const std::string& words);
/// The same of a figure; as text where this weft draws no pictures.
std::string picture(const plot::Figure& figure, const std::string& words);

}  // namespace weft::report
