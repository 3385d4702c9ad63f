// What the component leat::mpi owes its users: headers, symbols, and ranks that meet.

#include <leat/loader.hpp>
#include <leat/mpi.hpp>

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <vector>

namespace {

bool run() {
  leat::mpi_rendezvous ranks;
  const leat::dataset numbers =
      leat::from_function(10, [](std::uint64_t sample) { return std::vector<std::byte>{std::byte(sample)}; },
                          {.field = "number", .bytes_max = 1, .described_as = "its number"});
  const leat::loader_options options{
      .batch_size = 4, .epochs = 1, .world = ranks.world(), .host_bytes_max = std::size_t{16} << 20};
  leat::loader train =
      leat::make_together(ranks, [&] { return leat::loader(numbers, options, leat::bytes("number")); });
  std::uint64_t rows = 0;
  for (const leat::batch& batch : train.blocking()) rows += batch.valid_rows();
  return rows == 10 && leat::find_slowest(ranks, train.stats()).rank == 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  bool ok = false;
  try {
    ok = run();
  } catch (const std::exception& failure) {
    std::printf("leat::mpi: %s\n", failure.what());
  }
  MPI_Finalize();
  std::printf("leat::mpi: %s\n", ok ? "ok" : "broken");
  return ok ? 0 : 1;
}
