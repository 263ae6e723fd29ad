// A search of any function: the step size and the momentum with which gradient descent gets furthest in 100 steps along
// Rosenbrock's valley. Fails where it ends far from the bottom.
#include <weft/weft.h>

#include <cstdio>

using namespace weft;

double height(double x, double y) { return (1 - x) * (1 - x) + 100 * (y - x * x) * (y - x * x); }

double descend(double rate, double momentum) {
  double x = -1, y = 1, speed_x = 0, speed_y = 0;
  for (int step = 0; step < 100; ++step) {
    speed_x = momentum * speed_x + 2 * (1 - x) + 400 * x * (y - x * x);
    speed_y = momentum * speed_y - 200 * (y - x * x);
    x += rate * speed_x;
    y += rate * speed_y;
  }
  return height(x, y);
}

int main() try {
  tune::Search search(tune::Space({tune::log_real("rate", 1e-6, 1e-1), tune::real("momentum", 0, 0.99)}),
                      {.searcher = "gp"});
  for (int trial = 0; trial < 40; ++trial) {
    const tune::Asked asked = *search.ask();
    search.tell(asked.number,
                {descend(tune::number_of(asked.values, "rate"), tune::number_of(asked.values, "momentum"))});
  }
  const tune::Found best = *search.best();
  std::printf("height %.4f with rate %.5f and momentum %.3f\n", best.losses[0], tune::number_of(best.values, "rate"),
              tune::number_of(best.values, "momentum"));
  return best.losses[0] < 0.5 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return error.exit_code();
}
