#include "weft/search/memory_choice.h"

#include <algorithm>
#include <set>

namespace weft::search {

namespace {

/// What some of the blocks save and lose.
struct Point {
  double saved = 0, seconds = 0;
  int64_t recomputed = 0, in_file = 0;
};

double saved_by_recompute(const BlockClass& of, double in_flight) {
  return in_flight * (of.kept_bytes - of.boundary_bytes);
}

double all_bytes(const std::vector<BlockClass>& classes, double in_flight) {
  double bytes = 0;
  for (const BlockClass& of : classes) bytes += in_flight * of.kept_bytes * static_cast<double>(of.count);
  return bytes;
}

/// Keeps what no other beats, by rising bytes and seconds. Of those that save enough the cheapest alone.
void leave_best(std::vector<Point>& points, double enough, size_t most_points) {
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return a.saved != b.saved ? a.saved > b.saved : a.seconds < b.seconds;
  });
  std::vector<Point> best;
  for (const Point& point : points) {
    if (!best.empty() && best.back().saved >= enough && point.saved >= enough) {
      if (point.seconds < best.back().seconds) best.back() = point;
      continue;
    }
    if (best.empty() || point.seconds < best.back().seconds) best.push_back(point);
  }
  if (best.size() > most_points) {
    std::vector<Point> some;
    for (size_t at = 0; at < most_points; ++at) some.push_back(best[at * (best.size() - 1) / (most_points - 1)]);
    best = std::move(some);
  }
  points = std::move(best);
}

/// All that one class can do, joined to what the classes before it do.
std::vector<Point> with_class(const std::vector<Point>& before, const BlockClass& of, bool may_recompute,
                              double in_flight) {
  std::vector<Point> points;
  const int64_t most_twice = may_recompute ? of.count : 0;
  for (int64_t twice = 0; twice <= most_twice; ++twice) {
    const int64_t most_in_file = of.file_seconds < kNever ? of.count - twice : 0;
    for (int64_t in_file = 0; in_file <= most_in_file; ++in_file) {
      const double saved = static_cast<double>(twice) * saved_by_recompute(of, in_flight) +
                           static_cast<double>(in_file) * in_flight * of.kept_bytes;
      const double seconds = static_cast<double>(twice) * of.recompute_seconds +
                             (in_file > 0 ? static_cast<double>(in_file) * of.file_seconds : 0);
      for (const Point& point : before)
        points.push_back(
            {point.saved + saved, point.seconds + seconds, point.recomputed + twice, point.in_file + in_file});
    }
  }
  return points;
}

/// Where each byte costs what the cheapest bytes of its block cost: no choice of whole blocks loses less.
double bound_of(const std::vector<BlockClass>& classes, double needed, double in_flight) {
  struct Rate {
    double seconds_per_byte, bytes;
  };
  std::vector<Rate> rates;
  for (const BlockClass& of : classes) {
    const double twice = saved_by_recompute(of, in_flight), in_file = in_flight * of.kept_bytes;
    double rate = twice > 0 ? of.recompute_seconds / twice : kNever;
    if (of.file_seconds < kNever && in_file > 0) rate = std::min(rate, of.file_seconds / in_file);
    const double most = of.file_seconds < kNever ? in_file : twice;
    if (rate < kNever) rates.push_back({rate, most * static_cast<double>(of.count)});
  }
  std::sort(rates.begin(), rates.end(),
            [](const Rate& a, const Rate& b) { return a.seconds_per_byte < b.seconds_per_byte; });
  double seconds = 0;
  for (const Rate& rate : rates) {
    if (needed <= 0) break;
    seconds += std::min(needed, rate.bytes) * rate.seconds_per_byte;
    needed -= rate.bytes;
  }
  return seconds;
}

/// Of choices that compute no block twice which keeps more than `largest`.
struct BelowLargest {
  Point best;
  bool fits = false, is_complete = true;
  int64_t points = 0;
};
bool may_be_recomputed(const BlockClass& of, double largest) {
  return of.kept_bytes <= largest && of.boundary_bytes < of.kept_bytes;
}

double most_saved(const std::vector<BlockClass>& classes, double largest, double in_flight) {
  double saved = 0;
  for (const BlockClass& of : classes)
    saved += static_cast<double>(of.count) * (of.file_seconds < kNever         ? in_flight * of.kept_bytes
                                              : may_be_recomputed(of, largest) ? saved_by_recompute(of, in_flight)
                                                                               : 0);
  return saved;
}

BelowLargest choose_below(const std::vector<BlockClass>& classes, double largest, double free_bytes, double in_flight,
                          size_t most_points) {
  BelowLargest found;
  const double all = all_bytes(classes, in_flight), needed = all + largest - free_bytes;
  std::vector<Point> points{{}};
  for (const BlockClass& of : classes) {
    points = with_class(points, of, may_be_recomputed(of, largest), in_flight);
    found.points += static_cast<int64_t>(points.size());
    leave_best(points, needed, most_points);
    found.is_complete = found.is_complete && points.size() < most_points;
  }
  double seconds = kNever;
  for (const Point& point : points)
    if (point.saved >= needed && point.seconds < seconds) {
      found.best = point;
      found.fits = true;
      seconds = point.seconds;
    }
  return found;
}

}  // namespace

MemoryChoice choose_kept(const std::vector<BlockClass>& classes, double free_bytes, double in_flight,
                         size_t most_points) {
  const double all = all_bytes(classes, in_flight);
  MemoryChoice choice{.bytes = all, .bound_seconds = 0, .least_bytes = all};
  choice.fits = all <= free_bytes;
  std::set<double> largest{0};
  for (const BlockClass& of : classes)
    if (of.boundary_bytes < of.kept_bytes) largest.insert(of.kept_bytes);
  bool is_complete = true;
  double seconds = kNever;
  for (const double each : largest) {
    const double least = all + each - most_saved(classes, each, in_flight);
    choice.least_bytes = std::min(choice.least_bytes, least);
    if (all <= free_bytes || least > free_bytes) continue;
    const BelowLargest found = choose_below(classes, each, free_bytes, in_flight, most_points);
    choice.points += found.points;
    is_complete = is_complete && found.is_complete;
    if (!found.fits || found.best.seconds >= seconds) continue;
    seconds = choice.seconds = found.best.seconds;
    choice.fits = true;
    choice.bytes = all + each - found.best.saved;
    choice.recomputed = found.best.recomputed;
    choice.in_file = found.best.in_file;
  }
  choice.bound_seconds = is_complete ? choice.seconds : bound_of(classes, all - free_bytes, in_flight);
  return choice;
}

}  // namespace weft::search
