// A trainer of many ranks, each a process of mpirun's: they meet, load an epoch and say what it was.
//
//   mpirun -n 3 mpi_ranks CASE
//
// CASE: same; or what is wrong with the last rank: seed, place, world, broken, fields, dataset
#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/mpi.hpp>
#include <leat/own_samples.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

leat::dataset numbers(std::int64_t first) {
  std::vector<std::int64_t> values(45);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<std::int64_t>(i);
  std::vector<std::byte> bytes(values.size() * sizeof values[0]);
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return leat::from_function(
      values.size(),
      [bytes](std::uint64_t sample) {
        const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(sample * sizeof(std::int64_t));
        return std::vector<std::byte>(begin, begin + sizeof(std::int64_t));
      },
      {.field = "number", .bytes_max = sizeof(std::int64_t), .described_as = "numbers from " + std::to_string(first)});
}

void load(leat::rendezvous& ranks, std::string_view what) {
  const leat::world here = ranks.world();
  const bool odd = here.rank + 1 == here.size;
  leat::loader train = leat::make_together(ranks, [&] {
    if (odd && what == "broken") throw leat::error(leat::errc::not_found, "no such folder");
    if (odd && what == "strange") throw 7;
    leat::loader_options options{.global_batch_size = 8, .seed = 5, .epochs = 1, .decode_threads = 1};
    options.host_bytes_max = std::size_t{40} << 20;
    options.digests = true;
    options.world = here;
    if (odd && what == "seed") options.seed = 6;
    if (odd && what == "world") options.world = {};
    const leat::dataset samples = numbers(odd && what == "dataset" ? 1 : 0);
    std::vector<leat::field> fields{leat::bytes("number")};
    if (odd && what == "fields") fields = {leat::text("number")};
    leat::loader made(samples, options, fields);
    if (odd && what == "place") {
      options.resume = made.state().at(0, 3);
      return leat::loader(samples, options, fields);
    }
    return made;
  });

  // The rows of all ranks, in rank order, on rank 0.
  while (const std::optional<leat::batch> got = train.next_blocking()) {
    const std::span<const leat::digest> digests = got->row_digests();
    const auto rows = ranks.gather(std::as_bytes(digests));
    if (here.rank != 0) continue;
    std::printf("batch %llu", static_cast<unsigned long long>(got->index()));
    for (const std::vector<std::byte>& one : rows) {
      for (std::size_t at = 0; at < one.size(); at += sizeof(leat::digest)) {
        leat::digest row;
        std::memcpy(&row, one.data() + at, sizeof row);
        std::printf(" %s", row.hex().c_str());
      }
    }
    std::printf("\n");
  }
  const leat::slowest_rank slowest = leat::find_slowest(ranks, train.stats());
  std::printf("rank %u of %u (local %u of %u): slowest is rank %u\n", here.rank, here.size, here.local_rank,
              here.local_size, slowest.rank);
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  if (std::string_view(words[1]) == "too-early") {
    try {
      const leat::mpi_rendezvous ranks;
    } catch (const leat::error& refused) {
      std::printf("refused: %s\n", refused.what());
    }
    return 0;
  }
  MPI_Init(&count, &words);
  try {
    leat::mpi_rendezvous ranks;
    load(ranks, words[1]);
  } catch (const std::exception& problem) {
    std::printf("failed: %s\n", problem.what());
  } catch (int) {
    std::printf("failed: by itself\n");
  }
  std::fflush(stdout);
  MPI_Finalize();
  return 0;  // mpirun would end the others where one fails; what they say is looked at.
}
