// The normal distribution, also far out in its tails, where differences of probabilities lose all digits.
#pragma once

namespace weft::tune {

double normal_density(double z);
/// Of being below z.
double normal_probability(double z);
double log_normal_density(double z);
/// Logarithm of the probability of being between two numbers, low < high.
double log_normal_probability(double low, double high);
/// The z below which lies this probability, in (0, 1).
double normal_quantile(double probability);

}  // namespace weft::tune
