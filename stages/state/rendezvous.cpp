#include "base/text.hpp"

#include <leat/error.hpp>
#include <leat/loader_state.hpp>
#include <leat/loading.hpp>
#include <leat/rendezvous.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace leat {
namespace {

constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max();

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_bytes(std::span(&value, 1));
}

template <class T>
T value_of(std::span<const std::byte> bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (bytes.size() != sizeof(T)) {
    throw error(errc::usage, str_cat("ranks cannot meet: ", bytes.size(), " bytes came where ", sizeof(T),
                                     " were sent; do all run the same program and make the same calls?"));
  }
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::span<const std::byte> bytes_of_text(std::string_view text) { return std::as_bytes(std::span(text)); }

template <class T>
T broadcast_value(rendezvous& ranks, const T& of_rank_0) {
  return value_of<T>(ranks.broadcast(bytes_of(of_rank_0)));
}

/// What tells runs apart, of a rank: of one size, so that rank 0 of many thousands can hold them all.
struct summary {
  std::uint32_t rank = 0;
  std::uint32_t world = 0;
  std::uint32_t epoch = 0;
  std::uint32_t failed = 0;  // an errc and 1, where there is no loader, or what it is has no name
  std::uint64_t batch = 0;
  std::uint64_t global_batch_size = 0;
  std::uint32_t epochs = 0;
  std::uint32_t resumed = 0;  // 1: from a state
  std::array<digest, state_descriptions::part_count> parts = {};
};

/// A rank, as far as it got.
struct candidate {
  std::optional<loader> made;
  std::optional<loader_state> state;
  std::exception_ptr failure;
  std::string words;
  summary mine;
};

candidate try_make(const std::function<loader()>& make) {
  candidate own;
  const auto fail = [&](errc code, const char* words) {
    own.failure = std::current_exception();
    own.words = words;
    own.mine.failed = static_cast<std::uint32_t>(code) + 1;
  };
  try {
    own.made.emplace(make());
    own.state = own.made->state();
    own.mine.rank = own.state->rank;
    own.mine.world = own.state->world;
    own.mine.epoch = own.state->epoch;
    own.mine.batch = own.state->batch;
    own.mine.global_batch_size = own.state->global_batch_size;
    own.mine.epochs = own.made->options().epochs;
    own.mine.resumed = own.made->options().resume.has_value() ? 1 : 0;
    for (std::size_t i = 0; i < own.mine.parts.size(); ++i) {
      own.mine.parts[i] = own.state->descriptions->digest_of(static_cast<state_descriptions::part>(i));
    }
  } catch (const error& problem) {
    fail(problem.code(), problem.what());
  } catch (const std::exception& problem) {
    fail(errc::usage, problem.what());
  } catch (...) {
    fail(errc::usage, "an exception that has no words");
  }
  return own;
}

bool is_same_run(const summary& a, const summary& b, ranks_go_on from) {
  const bool is_one_place = a.epoch == b.epoch && a.batch == b.batch;
  const bool is_right_place = is_one_place || (from == ranks_go_on::apart && a.resumed == b.resumed);
  return is_right_place && a.global_batch_size == b.global_batch_size && a.epochs == b.epochs && a.parts == b.parts;
}

// The first rank that cannot go on with the others.
std::uint32_t find_odd(const std::vector<summary>& all, ranks_go_on from) {
  const auto size = static_cast<std::uint32_t>(all.size());
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    if (all[rank].failed != 0) return rank;
  }
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    if (all[rank].rank != rank || all[rank].world != size || !is_same_run(all[rank], all[0], from)) return rank;
  }
  return nobody;
}

std::string words_of(const description_difference& found, std::uint32_t rank) {
  constexpr std::string_view of[] = {"", "the dataset's ", "the fields' ", "the order's "};
  const std::string what = str_cat(of[static_cast<std::size_t>(found.where)], found.key);
  const std::string now = found.now ? str_cat("is ", *found.now) : std::string("is not there");
  const std::string before = found.before ? *found.before : std::string("is not there");
  return str_cat(what, " of rank ", rank, " ", now, ", and that of rank 0 ", found.before ? "is " : "", before);
}

// On rank 0, which has been sent what the odd one is.
std::string explain(const std::vector<summary>& all, std::uint32_t odd, const candidate& own,
                    std::span<const std::byte> sent, ranks_go_on from) {
  const summary& it = all[odd];
  const auto size = static_cast<std::uint32_t>(all.size());
  if (it.failed != 0) return str_cat("rank ", odd, ": ", text_of(sent));
  if (it.rank != odd || it.world != size) {
    return str_cat("the loader of rank ", odd, " of ", size, " takes itself for rank ", it.rank, " of ", it.world,
                   ": give it loader_options::world");
  }
  const loader_state state = loader_state::from_bytes(sent, str_cat("the state of rank ", odd));
  const auto found = differences(*state.descriptions, *own.state->descriptions);
  if (!found.empty()) return words_of(found.front(), odd);
  if (it.epochs != all[0].epochs) {
    return str_cat("epochs of rank ", odd, " is ", it.epochs, ", and that of rank 0 is ", all[0].epochs);
  }
  return str_cat("rank ", odd, " is at batch ", it.batch, " of epoch ", it.epoch, ", and rank 0 at batch ",
                 all[0].batch, " of epoch ", all[0].epoch,
                 from == ranks_go_on::in_step
                     ? ": give all of them the state of one place"
                     : ": one of them has lost its state; bring it back, or remove those of all ranks");
}

}  // namespace

loader make_together(rendezvous& ranks, const std::function<loader()>& make, ranks_go_on from) {
  const std::uint32_t rank = ranks.world().rank;
  candidate own = try_make(make);
  std::vector<summary> all;
  for (const std::vector<std::byte>& one : ranks.gather(bytes_of(own.mine))) all.push_back(value_of<summary>(one));
  const std::uint32_t odd = broadcast_value(ranks, rank == 0 ? find_odd(all, from) : nobody);
  if (odd == nobody) return std::move(*own.made);

  // What it is, from that rank alone: 16,384 descriptions would be a gigabyte.
  std::vector<std::byte> mine;
  if (rank == odd && own.failure != nullptr) {
    const auto text = bytes_of_text(own.words);
    mine.assign(text.begin(), text.end());
  } else if (rank == odd) {
    mine = own.state->bytes();
  }
  const std::vector<std::vector<std::byte>> sent = ranks.gather(mine);
  std::string words;
  errc code = errc::usage;
  if (rank == 0) {
    if (all[odd].failed != 0) code = static_cast<errc>(all[odd].failed - 1);
    try {
      words = explain(all, odd, own, sent[odd], from);
    } catch (const std::exception& problem) {  // The others wait for words.
      words = str_cat("rank ", odd, " is of another run: ", problem.what());
    }
  }
  code = broadcast_value(ranks, code);
  words = text_of(ranks.broadcast(bytes_of_text(words)));
  own.made.reset();
  if (own.failure != nullptr) std::rethrow_exception(own.failure);
  throw error(code, words);
}

slowest_rank find_slowest(rendezvous& ranks, const loader_stats& own) {
  struct waited {
    double s = 0;
    double s_mean = 0;
    std::uint32_t rank = 0;
    bottleneck slowest = bottleneck::consumer;
  };
  const waited mine{.s = own.next.wait_s, .rank = ranks.world().rank, .slowest = own.verdict.who};
  std::vector<waited> all;
  for (const std::vector<std::byte>& one : ranks.gather(bytes_of(mine))) all.push_back(value_of<waited>(one));
  waited longest = mine;
  if (mine.rank == 0) {
    longest = *std::max_element(all.begin(), all.end(), [](const waited& a, const waited& b) { return a.s < b.s; });
    double sum = 0;
    for (const waited& each : all) sum += each.s;
    longest.s_mean = sum / static_cast<double>(all.size());
  }
  longest = broadcast_value(ranks, longest);
  return {.rank = longest.rank,
          .wait_s = longest.s,
          .wait_s_mean = longest.s_mean,
          .slowest = std::string(name(longest.slowest))};
}

}  // namespace leat
