// Gloo's all-reduce of f32 over TCP, for benchmarks/all_reduce.py, which compiles it against Debian's libgloo-dev. One
// process per rank: gloo_all_reduce RANK SIZE DIRECTORY ROUNDS ALGORITHM INTERFACE BYTES... Prints per size a line:
// bytes, then the seconds of each round. ALGORITHM: ring and bcube (what PyTorch can use), ring_chunked and
// halving_doubling.
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace {

std::function<void()> make_run(const std::shared_ptr<gloo::rendezvous::Context>& context, const std::string& algorithm,
                               float* data, size_t count) {
  if (algorithm == "ring_chunked") {
    auto run = std::make_shared<gloo::AllreduceRingChunked<float>>(context, std::vector<float*>{data},
                                                                   static_cast<int>(count));
    return [run] { run->run(); };
  }
  if (algorithm == "halving_doubling") {
    auto run = std::make_shared<gloo::AllreduceHalvingDoubling<float>>(context, std::vector<float*>{data},
                                                                       static_cast<int>(count));
    return [run] { run->run(); };
  }
  auto options = std::make_shared<gloo::AllreduceOptions>(context);
  options->setAlgorithm(algorithm == "bcube" ? gloo::AllreduceOptions::Algorithm::BCUBE
                                             : gloo::AllreduceOptions::Algorithm::RING);
  options->setOutput(data, count);  // in place
  options->setReduceFunction(static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
  return [options] { gloo::allreduce(*options); };
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 8) return 2;
  const int rank = std::stoi(argv[1]), size = std::stoi(argv[2]), rounds = std::stoi(argv[4]);
  const std::string algorithm = argv[5];
  gloo::transport::tcp::attr attributes;
  attributes.iface = argv[6];
  std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(argv[3]);
  const auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->connectFullMesh(store, device);
  gloo::BarrierOptions together(context);
  for (int argument = 7; argument < argc; ++argument) {
    const int64_t bytes = std::stoll(argv[argument]);
    std::vector<float> data(static_cast<size_t>(bytes / 4), 1.0f);
    const auto run = make_run(context, algorithm, data.data(), data.size());
    // As `weft cluster bench` times: each rank writes its operand before, and the runs of a round take 2 ms or more.
    const auto time = [&](int repeats) {
      double seconds = 0;
      for (int i = 0; i < repeats; ++i) {
        std::fill(data.begin(), data.end(), 1.0f);
        gloo::barrier(together);
        const auto begin = std::chrono::steady_clock::now();
        run();
        seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / repeats;
      }
      return seconds;
    };
    time(2);
    // All ranks have to repeat as often.
    std::vector<float> repeats{static_cast<float>(std::clamp(2e-3 / time(2), 1.0, 50.0))};
    gloo::AllreduceOptions most(context);
    most.setOutput(repeats.data(), 1);
    most.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::max<float>));
    gloo::allreduce(most);
    std::printf("%lld", static_cast<long long>(bytes));
    for (int round = 0; round < rounds; ++round) std::printf(" %.9f", time(static_cast<int>(repeats[0])));
    std::printf("\n");
    std::fflush(stdout);
  }
  return 0;
}
