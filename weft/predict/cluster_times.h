// What a cluster file says of exchanges, energy and cost.
#pragma once

#include "weft/machines/cluster_file.h"
#include "weft/predict/node_times.h"
#include "weft/predict/prediction.h"

namespace weft::predict {

/// Of ranks that fill one host after the other, by the cheapest algorithm (simulate/collective_cost.h), along each axis
/// of their mesh.
ExchangeTimes exchange_on(const machines::ClusterFile& cluster, const Strategy& strategy);
/// The two numbers that passes plan with, of these times.
passes::Ranks ranks_of(const ExchangeTimes& exchange);

/// Seconds that work takes which a device would do in so many at its full rates, as it throttles.
double throttled_seconds(const machines::DeviceFile& device, double seconds);

/// Adds energy and cost where the file rates them.
void add_energy_and_cost(Prediction& prediction, const machines::ClusterFile& cluster);

}  // namespace weft::predict
