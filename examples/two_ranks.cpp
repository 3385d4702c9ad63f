// Two ranks of one run, here as two threads: each loads its rows of every global batch, and the gradients are summed, as
// NCCL or MPI would. The weights are those of a single process.
#include <leat/loader.hpp>

#include <array>
#include <barrier>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

using weights = std::array<double, 2>;
constexpr std::uint32_t global_batch = 64;

// A point and its value, y = 3 x - 1.
std::vector<std::byte> make_point(std::uint64_t sample) {
  const float x = static_cast<float>(sample % 100) / 100;
  const float point[] = {x, 3 * x - 1};
  std::vector<std::byte> bytes(sizeof point);
  std::memcpy(bytes.data(), point, sizeof point);
  return bytes;
}

std::string copy_point(std::span<const std::byte> stored, const leat::sample_context& /*of*/,
                       std::span<std::byte> row) {
  std::memcpy(row.data(), stored.data(), row.size());
  return {};
}

leat::loader load(leat::world world) {
  const leat::dataset points =
      leat::from_function(1'000, make_point, {.field = "point", .bytes_max = 8, .described_as = "points of a line"});
  return {
      points,
      {.batch_size = global_batch / world.size, .seed = 7, .epochs = 20, .world = world, .host_bytes_max = 32 << 20},
      leat::custom{"point", leat::dtype::f32, {2}, copy_point}.described_as("a copy")};
}

// Sums, so that it does not matter how the rows of a global batch are divided.
weights gradient(const leat::batch& batch, const weights& at) {
  weights sum{};
  const auto points = batch["point"].as<float>();
  for (std::size_t row = 0; row < batch.valid_rows(); ++row) {
    const double error = at[0] * points[2 * row] + at[1] - points[2 * row + 1];
    sum[0] += error * points[2 * row];
    sum[1] += error;
  }
  return sum;
}

template <class AllReduce>
weights train(leat::loader line, AllReduce all_reduce) {
  weights learnt{};
  while (!line.finished()) {
    for (const leat::batch& batch : line.blocking()) {
      const weights sum = all_reduce(gradient(batch, learnt));
      for (std::size_t i = 0; i < learnt.size(); ++i) learnt[i] -= 0.5 / global_batch * sum[i];
    }
  }
  return learnt;
}

int main() try {
  const weights alone = train(load({}), [](const weights& own) { return own; });

  std::array<weights, 2> given{}, learnt{};
  std::barrier all_here(2);
  const auto rank = [&](std::uint32_t number) {
    learnt[number] = train(load({.rank = number, .size = 2}), [&](const weights& own) {
      given[number] = own;
      all_here.arrive_and_wait();
      const weights sum{given[0][0] + given[1][0], given[0][1] + given[1][1]};
      all_here.arrive_and_wait();
      return sum;
    });
  };
  std::thread second(rank, 1U);
  rank(0);
  second.join();

  const bool same =
      learnt[0] == learnt[1] && std::abs(learnt[0][0] - alone[0]) + std::abs(learnt[0][1] - alone[1]) < 1e-9;
  std::printf("y = %.3f x %+.3f, %s\n", learnt[0][0], learnt[0][1],
              same ? "as in a single process" : "and other ones in a single process");
  return same ? 0 : 1;
} catch (const std::exception& problem) {
  std::fprintf(stderr, "two_ranks: %s\n", problem.what());
  return 1;
}
