#include <leat/error.hpp>
#include <leat/mpi.hpp>

#include <cstdint>
#include <limits>
#include <string>

namespace leat {
namespace {

void check(int result, const char* call) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw error(errc::io, std::string(call) + " failed: " + std::string(text, static_cast<std::size_t>(length)));
}

void check_running() {
  int begun = 0;
  int ended = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&ended);
  if (begun == 0 || ended != 0) {
    throw error(errc::usage, begun == 0 ? "MPI is not initialised: call MPI_Init before mpi_rendezvous is made"
                                        : "MPI has ended: make mpi_rendezvous before MPI_Finalize");
  }
}

std::uint32_t number(int of_mpi) { return static_cast<std::uint32_t>(of_mpi); }

int count_of(std::uint64_t bytes) {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<int>::max());
  if (bytes > most) throw error(errc::limit, "ranks send " + std::to_string(bytes) + " bytes at once; MPI takes 2 GiB");
  return static_cast<int>(bytes);
}

world world_of(MPI_Comm ranks) {
  int rank = 0;
  int size = 0;
  check(MPI_Comm_rank(ranks, &rank), "MPI_Comm_rank");
  check(MPI_Comm_size(ranks, &size), "MPI_Comm_size");
  MPI_Comm node = MPI_COMM_NULL;
  check(MPI_Comm_split_type(ranks, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
  int local_rank = 0;
  int local_size = 1;
  MPI_Comm_rank(node, &local_rank);
  MPI_Comm_size(node, &local_size);
  MPI_Comm_free(&node);
  return {
      .rank = number(rank), .size = number(size), .local_rank = number(local_rank), .local_size = number(local_size)};
}

}  // namespace

mpi_rendezvous::mpi_rendezvous(MPI_Comm among) {
  check_running();
  check(MPI_Comm_dup(among, &ranks_), "MPI_Comm_dup");
  try {
    // Errors are told, and do not end the process.
    check(MPI_Comm_set_errhandler(ranks_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    world_ = world_of(ranks_);
  } catch (...) {
    MPI_Comm_free(&ranks_);
    throw;
  }
}

mpi_rendezvous::~mpi_rendezvous() {
  int ended = 0;
  MPI_Finalized(&ended);
  if (ended == 0) MPI_Comm_free(&ranks_);
}

std::vector<std::byte> mpi_rendezvous::broadcast(std::span<const std::byte> of_rank_0) {
  check_running();
  std::uint64_t bytes = of_rank_0.size();
  check(MPI_Bcast(&bytes, 1, MPI_UINT64_T, 0, ranks_), "MPI_Bcast");
  const int count = count_of(bytes);  // The same on all ranks: none is left waiting.
  std::vector<std::byte> all(bytes);
  if (world_.rank == 0) all.assign(of_rank_0.begin(), of_rank_0.end());
  check(MPI_Bcast(all.data(), count, MPI_BYTE, 0, ranks_), "MPI_Bcast");
  return all;
}

std::vector<std::vector<std::byte>> mpi_rendezvous::gather(std::span<const std::byte> own) {
  check_running();
  const std::uint64_t bytes = own.size();
  std::uint64_t sum = 0;
  check(MPI_Allreduce(&bytes, &sum, 1, MPI_UINT64_T, MPI_SUM, ranks_), "MPI_Allreduce");
  const int total = count_of(sum);  // The same on all ranks.
  const int count = count_of(bytes);
  const bool first = world_.rank == 0;
  std::vector<int> counts(first ? world_.size : 0);
  check(MPI_Gather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, ranks_), "MPI_Gather");
  std::vector<int> places(counts.size());
  for (std::size_t rank = 1; rank < counts.size(); ++rank) places[rank] = places[rank - 1] + counts[rank - 1];
  std::vector<std::byte> joined(first ? static_cast<std::size_t>(total) : 0);
  check(MPI_Gatherv(own.data(), count, MPI_BYTE, joined.data(), counts.data(), places.data(), MPI_BYTE, 0, ranks_),
        "MPI_Gatherv");
  std::vector<std::vector<std::byte>> all;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    const auto begin = joined.begin() + places[rank];
    all.emplace_back(begin, begin + counts[rank]);
  }
  return all;
}

}  // namespace leat
