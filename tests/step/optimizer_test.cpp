// Fifty steps of each optimiser, through passes, plan and executor, against torch.optim 1.13.1 in float64 or, where
// PyTorch has none, against the papers' formulas in double.
#include "weft/step/optimizers/optimizer.h"

#include "tests/support/optimizer_problem.h"
#include "weft/base/error.h"

namespace weft::step {
namespace {

// torch.optim.SGD([{w, weight_decay 0.1}, {b, weight_decay 0}], lr=0.05, momentum=0.9, nesterov=True)
TEST(Optimizer, SgdIsPyTorchs) {
  spec::RunSpec spec = spec_of("sgd", 0.05, 0.1);
  spec.optimizer.nesterov = true;
  expect_near(train(spec), {-0.150806433, -0.633350762, -0.808188239, -0.597662012, -0.113063929, 0.415695166,
                            0.751141401, 0.743503177, 0.389439853, -0.156230213, -0.636198006, -0.812664575,
                            -0.696005733, -0.729385367, -0.434670753});
}

// torch.optim.Adam(the same groups, lr=0.01, betas=(0.9, 0.99), eps=1e-6)
TEST(Optimizer, AdamIsPyTorchs) {
  expect_near(train(spec_of("adam", 0.01, 0.1)), {-0.0681974479, 0.663359215, 0.316037159, -0.498760468, -0.590406721,
                                                  0.229423285, 0.798361488, 0.255797335, -0.575201143, -0.57423985,
                                                  0.233069591, 0.685727374, 0.587556642, 0.520658395, -0.316267639});
}

// torch.optim.AdamW(the same)
TEST(Optimizer, AdamWIsPyTorchs) {
  expect_near(train(spec_of("adamw", 0.01, 0.1)), {-0.0687040009, 0.650226699, 0.316100023, -0.499211092, -0.581053247,
                                                   0.230969665, 0.791183039, 0.258167655, -0.577422858, -0.581564245,
                                                   0.23261056, 0.67424297, 0.587556642, 0.520658395, -0.316267639});
}

// torch.optim.RMSprop(the same groups, lr=0.01, alpha=0.95, eps=1e-6)
TEST(Optimizer, RmspropIsPyTorchs) {
  spec::RunSpec spec = spec_of("rmsprop", 0.01, 0.1);
  spec.optimizer.smoothing = 0.95;
  spec.optimizer.momentum = 0;
  expect_near(train(spec),
              {-0.145911922, 0.545623722, 0.254019388, -0.416168486, -0.434306212, 0.292333124, 0.747960081, 0.23459884,
               -0.53323992, -0.559769191, 0.150308596, 0.591870471, 0.491318066, 0.459890494, -0.244495375});
}

// torch.optim.RMSprop(the same, momentum=0.9)
TEST(Optimizer, RmspropWithMomentumIsPyTorchs) {
  spec::RunSpec spec = spec_of("rmsprop", 0.01, 0.1);
  spec.optimizer.smoothing = 0.95;
  expect_near(train(spec), {0.143467565, -0.0812454687, -0.140218183, -0.103107404, -0.0983943713, -0.114925579,
                            -0.0621365563, 0.0991105719, 0.239305396, 0.1913464, -0.0131821062, -0.200071799,
                            -0.140975636, -0.20804492, -0.087629503});
}

// torch.optim.RMSprop(the same, momentum=0.9, centered=True)
TEST(Optimizer, CenteredRmspropIsPyTorchs) {
  spec::RunSpec spec = spec_of("rmsprop", 0.01, 0.1);
  spec.optimizer.smoothing = 0.95;
  spec.optimizer.centered = true;
  expect_near(train(spec), {0.192136212, -0.0668766431, -0.131466706, -0.112132793, -0.139205769, -0.167095092,
                            -0.0855376304, 0.0968912479, 0.249227877, 0.21231528, 0.0100670361, -0.198270612,
                            -0.135439369, -0.21096039, -0.0941746173});
}

/// The weights after 50 steps of momentum 0.5 + 0.008 t.
Numbers train_with_rising_momentum(spec::RunSpec spec) {
  spec.optimizer.momentum_schedule.name = "piecewise";
  Problem problem(spec);
  for (int step = 0; step < 50; ++step) problem.step(step, spec.optimizer.learning_rate, 0.5 + 0.008 * step);
  return problem.all();
}

// SGD as above, with group["momentum"] = 0.5 + 0.008 * step before each step
TEST(MomentumSchedule, OfSgdIsPyTorchs) {
  spec::RunSpec spec = spec_of("sgd", 0.05, 0.1);
  expect_near(train_with_rising_momentum(spec), {-0.104917735, -0.659684175, -0.898105496, -0.710878123, -0.193657244,
                                                 0.409064212, 0.820754966, 0.852738128, 0.485680487, -0.115028408,
                                                 -0.666449947, -0.9017761, -0.752485505, -0.856711229, -0.549883526});
  spec.optimizer.nesterov = true;
  expect_near(train_with_rising_momentum(spec), {-0.349747033, -0.79143417, -0.855160978, -0.513623218, 0.0653850034,
                                                 0.608382054, 0.86652822, 0.723077377, 0.241451673, -0.358660928,
                                                 -0.794626103, -0.854364772, -0.839939415, -0.775947758, -0.340651063});
}

// RMSprop as above, the same
TEST(MomentumSchedule, OfRmspropIsPyTorchs) {
  spec::RunSpec spec = spec_of("rmsprop", 0.01, 0.1);
  spec.optimizer.smoothing = 0.95;
  expect_near(
      train_with_rising_momentum(spec),
      {-0.0274273438, 0.0585931688, -0.116234682, -0.27526429, -0.174951098, 0.133661115, 0.364487695, 0.250115038,
       0.00329731872, -0.124322909, -0.0694961072, -0.00303208086, 0.0326270709, -0.0301603678, -0.214074963});
}

TEST(MomentumSchedule, ThatStaysIsTheMomentum) {
  for (const std::string name : {"sgd", "lars", "muon", "rmsprop"}) {
    spec::RunSpec spec = spec_of(name, 0.01, 0.1);
    const Numbers wanted = train(spec);
    spec.optimizer.momentum_schedule.name = "piecewise";
    Problem problem(spec);
    for (int step = 0; step < 50; ++step) problem.step(step, 0.01, 0.9);
    expect_near(problem.all(), wanted);
  }
}

double norm(const Numbers& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

// You et al. 2020, algorithm 2.
TEST(Optimizer, LambIsThePapers) {
  const double rate = 0.02, decay = 0.1, beta1 = 0.9, beta2 = 0.99, epsilon = 1e-6;
  std::map<bool, Numbers> m{{false, Numbers(12, 0)}, {true, Numbers(3, 0)}}, v = m;
  const Numbers expected = reference([&](Numbers& x, const Numbers& g, int step, bool is_bias) {
    Numbers u(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      m[is_bias][i] = beta1 * m[is_bias][i] + (1 - beta1) * g[i];
      v[is_bias][i] = beta2 * v[is_bias][i] + (1 - beta2) * g[i] * g[i];
      const double mean = m[is_bias][i] / (1 - std::pow(beta1, step + 1));
      const double square = v[is_bias][i] / (1 - std::pow(beta2, step + 1));
      u[i] = mean / (std::sqrt(square) + epsilon) + (is_bias ? 0 : decay) * x[i];
    }
    const double ratio = is_bias ? 1 : norm(x) / norm(u);
    for (size_t i = 0; i < x.size(); ++i) x[i] -= rate * ratio * u[i];
  });
  expect_near(train(spec_of("lamb", rate, decay)), expected);
}

// You, Gitman and Ginsburg 2017, algorithm 1.
TEST(Optimizer, LarsIsThePapers) {
  const double rate = 0.5, decay = 0.1, momentum = 0.9, eta = 0.02;
  std::map<bool, Numbers> v{{false, Numbers(12, 0)}, {true, Numbers(3, 0)}};
  const Numbers expected = reference([&](Numbers& w, const Numbers& g, int, bool is_bias) {
    const double local = is_bias ? 1 : eta * norm(w) / (norm(g) + decay * norm(w));
    for (size_t i = 0; i < w.size(); ++i) {
      const double slope = g[i] + (is_bias ? 0 : decay) * w[i];
      v[is_bias][i] = momentum * v[is_bias][i] + rate * local * slope;
      w[i] -= v[is_bias][i];
    }
  });
  spec::RunSpec spec = spec_of("lars", rate, decay);
  spec.optimizer.trust_coefficient = eta;
  expect_near(train(spec), expected, 5e-5);
}

/// a [m,n] times b [n,k].
Numbers product(const Numbers& a, const Numbers& b, size_t m, size_t n, size_t k) {
  Numbers c(m * k, 0);
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < k; ++j)
      for (size_t l = 0; l < n; ++l) c[i * k + j] += a[i * n + l] * b[l * k + j];
  return c;
}
Numbers transposed(const Numbers& a, size_t m, size_t n) {
  Numbers t(a.size());
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) t[j * m + i] = a[i * n + j];
  return t;
}

/// zeropower_via_newtonschulz5 of Keller Jordan's code, in double.
Numbers orthogonalized(Numbers x, size_t rows, size_t columns) {
  if (rows > columns) return transposed(orthogonalized(transposed(x, rows, columns), columns, rows), columns, rows);
  const double scale = norm(x) + 1e-7;
  for (double& value : x) value /= scale;
  for (int iteration = 0; iteration < 5; ++iteration) {
    const Numbers a = product(x, transposed(x, rows, columns), rows, columns, rows);
    Numbers b = product(a, a, rows, rows, rows);
    for (size_t i = 0; i < b.size(); ++i) b[i] = -4.7750 * a[i] + 2.0315 * b[i];
    const Numbers bx = product(b, x, rows, rows, columns);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] + bx[i];
  }
  return x;
}

void expect_muon(const Shape& shape) {
  const double rate = 0.02, decay = 0.1, momentum = 0.95;
  const auto rows = static_cast<size_t>(shape[0]), columns = 12 / rows;
  Numbers average(12, 0), m(3, 0), v(3, 0);
  const Numbers expected = reference([&](Numbers& w, const Numbers& g, int step, bool is_bias) {
    if (is_bias) {  // AdamW
      for (size_t i = 0; i < 3; ++i) {
        m[i] = 0.9 * m[i] + 0.1 * g[i];
        v[i] = 0.99 * v[i] + 0.01 * g[i] * g[i];
        const double root = std::sqrt(v[i] / (1 - std::pow(0.99, step + 1)));
        w[i] -= rate * 0.25 * m[i] / (1 - std::pow(0.9, step + 1)) / (root + 1e-6);
      }
      return;
    }
    Numbers ahead(12);
    for (size_t i = 0; i < 12; ++i) {
      average[i] = momentum * average[i] + (1 - momentum) * g[i];
      ahead[i] = momentum * average[i] + (1 - momentum) * g[i];
    }
    const Numbers direction = orthogonalized(ahead, rows, columns);
    const double scale = std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(columns)));
    for (size_t i = 0; i < 12; ++i) w[i] = w[i] * (1 - rate * decay) - rate * scale * direction[i];
  });
  spec::RunSpec spec = spec_of("muon", rate, decay);
  spec.optimizer.momentum = momentum;
  spec.optimizer.adamw_learning_rate_factor = 0.25;
  expect_near(train(spec, shape), expected, 1e-4);
}

TEST(Optimizer, MuonOfAWideMatrixIsTheSources) { expect_muon({3, 4}); }
TEST(Optimizer, MuonOfATallMatrixIsTheSources) { expect_muon({6, 2}); }
TEST(Optimizer, MuonOfAConvolutionIsThatOfItsMatrix) { expect_muon({2, 3, 2, 1}); }

TEST(Optimizer, MuonLeavesAllButHiddenWeightsToAdamW) {
  spec::RunSpec muon = spec_of("muon", 0.02, 0.1), adamw = spec_of("adamw", 0.01, 0.1);
  muon.optimizer.adamw_learning_rate_factor = 0.5;
  expect_near(train(muon, {3, 4}, /*hidden=*/false), train(adamw), 1e-6);
}

TEST(Optimizer, TrustRatiosOfZeroGradientsAndWeightsAreOne) {
  for (const char* name : {"lamb", "lars"}) {
    spec::RunSpec spec = spec_of(name, 0.1, 0.1);
    Problem problem(spec);
    for (float* w = problem.state.get("w").data_as<float>(); float& value : std::span(w, 12)) value = 0;
    problem.step(0, 0.1);
    for (const double value : problem.all()) EXPECT_TRUE(std::isfinite(value)) << name;
    EXPECT_NE(problem.values("w")[1], 0) << name << " leaves zero";
  }
}

TEST(Optimizer, SlotsAreNamedAfterTheirParameters) {
  const std::map<std::string, std::vector<std::string>> wanted = {
      {"sgd", {"optimizer/velocity/w", "optimizer/velocity/b"}},
      {"adam",
       {"optimizer/first_moment/w", "optimizer/second_moment/w", "optimizer/first_moment/b",
        "optimizer/second_moment/b"}},
      {"rmsprop",
       {"optimizer/square_average/w", "optimizer/velocity/w", "optimizer/square_average/b", "optimizer/velocity/b"}},
      {"lars", {"optimizer/velocity/w", "optimizer/velocity/b"}},
      {"muon", {"optimizer/momentum/w", "optimizer/first_moment/b", "optimizer/second_moment/b"}}};
  for (const auto& [name, names] : wanted) {
    const Problem problem(spec_of(name, 0.1, 0));
    std::vector<std::string> found;
    for (const SlotSpec& slot : problem.slots) found.push_back(slot.name);
    EXPECT_EQ(found, names) << name;
  }
}

}  // namespace
}  // namespace weft::step
