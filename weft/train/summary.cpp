#include "weft/train/summary.h"

#include <nlohmann/json.hpp>

namespace weft::train {

std::string print_summary(const Summary& s) {
  using nlohmann::ordered_json;
  const auto number = [](const std::optional<double>& value) { return value ? ordered_json(*value) : ordered_json(); };
  const ordered_json root = {{"model", s.model},
                             {"data", s.data},
                             {"precision", s.precision},
                             {"threads", s.threads},
                             {"parameters", s.parameters},
                             {"epochs", s.epochs},
                             {"steps", s.steps},
                             {"batch", s.batch},
                             {"seed", s.seed},
                             {"test_accuracy", number(s.test_accuracy)},
                             {"test_loss", number(s.test_loss)},
                             {"best_test_accuracy", number(s.best_test_accuracy)},
                             {"train_accuracy", number(s.train_accuracy)},
                             {"train_loss", number(s.train_loss)},
                             {"train_seconds", s.train_seconds},
                             {"images_per_second", s.images_per_second},
                             {"compile_seconds", s.compile_seconds},
                             {"planned_peak_bytes", s.planned_peak_bytes},
                             {"arena_bytes", s.arena_bytes},
                             {"planned_total_bytes", s.planned_total_bytes},
                             {"rss_growth_bytes", s.rss_growth_bytes},
                             {"peak_rss_bytes", s.peak_rss_bytes}};
  return root.dump(2) + "\n";
}

std::optional<Summary> parse_summary(std::string_view text) {
  using nlohmann::json;
  try {
    const json root = json::parse(text);
    const auto number = [&](const char* key) {
      const json& value = root.at(key);
      return value.is_null() ? std::nullopt : std::optional<double>(value.get<double>());
    };
    return Summary{.model = root.at("model"),
                   .data = root.at("data"),
                   .precision = root.at("precision"),
                   .threads = root.at("threads"),
                   .parameters = root.at("parameters"),
                   .epochs = root.at("epochs"),
                   .steps = root.at("steps"),
                   .batch = root.at("batch"),
                   .seed = root.at("seed"),
                   .test_accuracy = number("test_accuracy"),
                   .test_loss = number("test_loss"),
                   .best_test_accuracy = number("best_test_accuracy"),
                   .train_accuracy = number("train_accuracy"),
                   .train_loss = number("train_loss"),
                   .train_seconds = root.at("train_seconds"),
                   .images_per_second = root.at("images_per_second"),
                   .compile_seconds = root.at("compile_seconds"),
                   .planned_peak_bytes = root.at("planned_peak_bytes"),
                   .arena_bytes = root.at("arena_bytes"),
                   .planned_total_bytes = root.at("planned_total_bytes"),
                   .rss_growth_bytes = root.at("rss_growth_bytes"),
                   .peak_rss_bytes = root.at("peak_rss_bytes")};
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace weft::train
