// Rows that hold several texts: which tokens lie where, for any world, from any place on.
#include "tests/loader/running.hpp"
#include "tests/support/memory_store.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/error.hpp>
#include <leat/index_options.hpp>
#include <leat/loading.hpp>
#include <leat/object_store.hpp>
#include <leat/open.hpp>
#include <leat/order.hpp>
#include <leat/tokenizer.hpp>
#include <leat/world.hpp>

#include <boost/asio/awaitable.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using ::testing::HasSubstr;
using testing::small_options;
using testing::values_of;
using testing::watchdog;

constexpr std::size_t texts_in_all = 90;
constexpr std::int64_t no_token = -7;

tokenizer tokenizer_of(const std::string& name) {
  return tokenizer::open((std::filesystem::path(LEAT_TEST_DATA) / "tokenizers" / name).string());
}

/// Each begins with its number, so that no two have the same tokens. Some are longer than a row.
std::string line_of(std::uint64_t sample) {
  std::string text = std::to_string(sample);
  const std::uint64_t words = sample % 29 == 5 ? 150 : sample % 17;
  for (std::uint64_t i = 0; i < words; ++i) text += i % 2 == 0 ? " the others" : " and Größe 12345";
  return text;
}

/// As JSONL: where a text lies is known, and how many tokens it has is not.
class text_lines {
 public:
  explicit text_lines(std::size_t count = texts_in_all) {
    std::ofstream file(path());
    for (std::uint64_t i = 0; i < count; ++i) {
      file << R"({"text": ")" << line_of(i) << R"(", "number": )" << i << "}\n";
    }
  }
  [[nodiscard]] std::string path() const { return (directory_.path() / "texts.jsonl").string(); }
  [[nodiscard]] dataset opened() const { return leat::open(path()); }

 private:
  testing::temporary_directory directory_;
};

std::vector<std::int32_t> wanted_tokens(const tokenizer& words, std::uint64_t sample) {
  std::vector<std::int32_t> tokens = words.encode(line_of(sample));
  tokens.push_back(words.find("<|end|>").value());
  return tokens;
}

struct packed_batch {
  std::uint32_t epoch = 0;
  std::uint64_t index = 0;
  std::vector<std::uint64_t> ids;  // of the pieces
  std::vector<std::string> digests;
  std::size_t rows = 0;
  std::vector<std::int64_t> tokens;
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> documents;
  std::vector<std::int32_t> cu_seqlens;
  std::int32_t max_seqlen = 0;

  friend bool operator==(const packed_batch&, const packed_batch&) = default;
};

packed_batch packed_of(const batch& got) {
  packed_batch seen{.epoch = got.epoch(),
                    .index = got.index(),
                    .ids = {got.ids().begin(), got.ids().end()},
                    .digests = {},
                    .rows = static_cast<std::size_t>(got["text"].shape[0]),
                    .tokens = values_of<std::int64_t>(got, "text"),
                    .positions = values_of<std::int32_t>(got, "text.positions"),
                    .documents = values_of<std::int32_t>(got, "text.documents"),
                    .cu_seqlens = values_of<std::int32_t>(got, "text.cu_seqlens"),
                    .max_seqlen = values_of<std::int32_t>(got, "text.max_seqlen").at(0)};
  for (const digest& each : got.row_digests()) seen.digests.push_back(each.hex());
  return seen;
}

tokenize as_tokens(const tokenizer& words) { return tokenize("text", words).as(dtype::i64).eos("<|end|>"); }

testing::loader_options packing_options(std::uint32_t length, packed_options by = {}) {
  testing::loader_options options = small_options();
  by.pad = no_token;
  options.order = packed(length, by);
  return options;
}

std::vector<packed_batch> packed_run(testing::loader& train) {
  std::vector<packed_batch> all;
  while (!train.finished()) {
    while (std::optional<batch> got = train.next_blocking()) all.push_back(packed_of(*got));
  }
  return all;
}

std::vector<packed_batch> packed_run(const dataset& of, const testing::loader_options& options,
                                     const tokenizer& words) {
  testing::loader train(of, options, as_tokens(words));
  return packed_run(train);
}

/// The pieces of one epoch, one behind the other: the tokens of each.
std::vector<std::pair<std::uint64_t, std::vector<std::int32_t>>> sequences_of(const std::vector<packed_batch>& batches,
                                                                              std::uint32_t epoch, std::size_t length) {
  std::vector<std::pair<std::uint64_t, std::vector<std::int32_t>>> all;
  for (const packed_batch& each : batches) {
    if (each.epoch != epoch) continue;
    EXPECT_EQ(each.tokens.size(), each.rows * length);
    std::size_t piece = 0;
    EXPECT_EQ(each.cu_seqlens.front(), 0);
    EXPECT_EQ(each.cu_seqlens.back(), static_cast<std::int32_t>(each.tokens.size()));
    std::int32_t longest = 0;
    for (std::size_t s = 0; s + 1 < each.cu_seqlens.size(); ++s) {
      const auto begin = static_cast<std::size_t>(each.cu_seqlens[s]);
      const auto end = static_cast<std::size_t>(each.cu_seqlens[s + 1]);
      longest = std::max(longest, static_cast<std::int32_t>(end - begin));
      EXPECT_LT(begin, end);
      EXPECT_EQ(begin / length, (end - 1) / length) << "a sequence over the edge of a row";
      const bool is_padding = each.documents[begin] == -1;
      const bool is_first = begin % length == 0;
      if (!is_padding) {
        EXPECT_EQ(each.documents[begin], is_first ? 0 : each.documents[begin - 1] + 1);
        all.emplace_back(each.ids.at(piece++), std::vector<std::int32_t>());
      }
      for (std::size_t at = begin; at < end; ++at) {
        EXPECT_EQ(each.documents[at], each.documents[begin]);
        EXPECT_EQ(each.positions[at], is_padding ? 0 : static_cast<std::int32_t>(at - begin));
        if (is_padding) {
          EXPECT_EQ(each.tokens[at], no_token);
        } else {
          all.back().second.push_back(static_cast<std::int32_t>(each.tokens[at]));
        }
      }
    }
    EXPECT_EQ(piece, each.ids.size());
    EXPECT_EQ(each.max_seqlen, longest);
  }
  return all;
}

TEST(packed, by_stream_delivers_each_token_once_and_fills_all_rows_but_the_last) {
  const watchdog dog("packed by stream");
  const text_lines files;
  const tokenizer words = tokenizer_of("gpt2.json");
  for (const std::uint32_t length : {1U, 7U, 32U, 5000U}) {
    for (const bool shuffle : {true, false}) {
      const std::vector<packed_batch> batches =
          packed_run(files.opened(), packing_options(length, {.shuffle = shuffle}), words);
      std::vector<std::uint64_t> orders[2];
      for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
        // A text that was cut goes on with the next row.
        std::map<std::uint64_t, std::vector<std::int32_t>> whole;
        for (auto& [sample, tokens] : sequences_of(batches, epoch, length)) {
          std::vector<std::int32_t>& so_far = whole[sample];
          if (so_far.empty()) orders[epoch].push_back(sample);
          EXPECT_EQ(orders[epoch].back(), sample) << "another text between two pieces";
          so_far.insert(so_far.end(), tokens.begin(), tokens.end());
        }
        ASSERT_EQ(whole.size(), texts_in_all);
        std::size_t in_all = 0;
        for (const auto& [sample, tokens] : whole) {
          ASSERT_EQ(tokens, wanted_tokens(words, sample)) << "text " << sample;
          in_all += tokens.size();
        }
        std::size_t rows = 0;
        for (const packed_batch& each : batches) rows += each.epoch == epoch ? each.rows : 0;
        EXPECT_EQ(rows, (in_all + length - 1) / length);
      }
      EXPECT_EQ(orders[0] == orders[1], !shuffle);
      EXPECT_EQ(std::is_sorted(orders[0].begin(), orders[0].end()), !shuffle);
    }
  }
}

TEST(packed, whole_texts_lie_in_one_row_each_and_longer_ones_are_cut_or_split_or_left_out) {
  watchdog dog("packed by fit");
  const text_lines files;
  const tokenizer words = tokenizer_of("gpt2.json");
  constexpr std::uint32_t length = 120;
  for (const packed_by by : {packed_by::best_fit, packed_by::first_fit}) {
    for (const longer_samples longer : {longer_samples::cut, longer_samples::split, longer_samples::skip}) {
      for (const std::uint32_t pool : {1U, 20U, 4096U}) {
        dog.step("a pool of " + std::to_string(pool));
        const std::vector<packed_batch> batches =
            packed_run(files.opened(), packing_options(length, {.by = by, .longer = longer, .pool = pool}), words);
        for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
          std::map<std::uint64_t, std::vector<std::vector<std::int32_t>>> seen;
          std::size_t in_all = 0;
          for (auto& [sample, tokens] : sequences_of(batches, epoch, length)) {
            in_all += tokens.size();
            seen[sample].push_back(std::move(tokens));
          }
          for (std::uint64_t sample = 0; sample < texts_in_all; ++sample) {
            const std::vector<std::int32_t> whole = wanted_tokens(words, sample);
            std::vector<std::vector<std::int32_t>> wanted;
            for (std::size_t begin = 0; begin < whole.size(); begin += length) {
              const std::size_t end = std::min<std::size_t>(whole.size(), begin + length);
              wanted.emplace_back(whole.begin() + static_cast<std::ptrdiff_t>(begin),
                                  whole.begin() + static_cast<std::ptrdiff_t>(end));
            }
            if (whole.size() > length && longer == longer_samples::cut) wanted.resize(1);
            if (whole.size() > length && longer == longer_samples::skip) wanted.clear();
            ASSERT_THAT(seen[sample], ::testing::UnorderedElementsAreArray(wanted)) << "text " << sample;
          }
          std::size_t rows = 0;
          for (const packed_batch& each : batches) rows += each.epoch == epoch ? each.rows : 0;
          // No order can do with fewer rows than the tokens fill; a pool of all of them comes near that.
          EXPECT_GE(rows * length, in_all);
          if (pool == 4096 && by == packed_by::best_fit) EXPECT_LE(rows, in_all / length + 2);
          if (pool == 4096) EXPECT_LE(rows, in_all / length * 11 / 10 + 1);
        }
      }
    }
  }
}

// Of each text one token is left over, and no text is as short: of these a row holds the most pieces.
TEST(packed, rows_of_what_is_left_of_split_texts_have_room_for_all_pieces) {
  const watchdog dog("packed, split");
  const testing::temporary_directory directory;
  const std::string path = (directory.path() / "texts.jsonl").string();
  const tokenizer words = tokenizer_of("gpt2.json");
  const std::string text = line_of(16);
  const auto length = static_cast<std::uint32_t>(words.encode(text).size());  // and a token that ends it
  constexpr std::uint64_t count = 300;
  {
    std::ofstream file(path);
    for (std::uint64_t i = 0; i < count; ++i) file << R"({"text": ")" << text << "\"}\n";
  }
  for (const packed_by by : {packed_by::best_fit, packed_by::first_fit}) {
    const std::vector<packed_batch> batches =
        packed_run(leat::open(path), packing_options(length, {.by = by, .longer = longer_samples::split}), words);
    std::map<std::size_t, std::size_t> pieces;  // of each length
    for (const auto& [sample, tokens] : sequences_of(batches, 0, length)) ++pieces[tokens.size()];
    EXPECT_EQ(pieces, (std::map<std::size_t, std::size_t>{{1, count}, {length, count}}));
  }
}

// Of so many tokens that they are made once for all rows, by whichever thread asks first.
TEST(packed, a_text_of_many_rows_is_the_same_in_them_and_is_not_read_once_a_row) {
  watchdog dog("packed long texts");
  const testing::temporary_directory directory;
  const std::string path = (directory.path() / "texts.jsonl").string();
  const tokenizer words = tokenizer_of("gpt2.json");
  constexpr std::uint32_t length = 64;
  std::vector<std::string> texts;
  for (const std::size_t repeated : {1U, 900U, 3U, 1500U, 0U, 700U}) {
    std::string text = std::to_string(repeated) + "\n";
    for (std::size_t i = 0; i < repeated; ++i) text += " the others " + std::to_string(i * i) + "\n";
    texts.push_back(text);
  }
  std::size_t bytes = 0;
  {
    std::ofstream file(path);
    for (const std::string& each : texts) {
      std::string escaped;
      for (const char c : each) escaped += c == '\n' ? std::string("\\n") : std::string(1, c);
      file << R"({"text": ")" << escaped << "\"}\n";
      bytes += escaped.size();
    }
  }
  const packed_options split{.by = packed_by::best_fit, .longer = longer_samples::split};
  for (const packed_options& by : {packed_options{}, packed_options{.shuffle = false}, split}) {
    for (const std::uint32_t threads : {1U, 4U}) {
      dog.step("threads: " + std::to_string(threads));
      testing::loader_options options = packing_options(length, by);
      options.decode_threads = threads;
      testing::loader train(leat::open(path), options, as_tokens(words));
      const std::vector<packed_batch> batches = packed_run(train);
      for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
        std::map<std::uint64_t, std::vector<std::vector<std::int32_t>>> pieces;
        std::map<std::uint64_t, std::vector<std::int32_t>> whole;
        for (auto& [sample, tokens] : sequences_of(batches, epoch, length)) {
          whole[sample].insert(whole[sample].end(), tokens.begin(), tokens.end());
          pieces[sample].push_back(std::move(tokens));
        }
        for (std::uint64_t sample = 0; sample < texts.size(); ++sample) {
          std::vector<std::int32_t> wanted = words.encode(texts[sample]);
          wanted.push_back(words.find("<|end|>").value());
          if (by.by == packed_by::stream) {
            ASSERT_EQ(whole[sample], wanted) << "text " << sample;
            continue;
          }
          std::vector<std::vector<std::int32_t>> parts;
          for (std::size_t begin = 0; begin < wanted.size(); begin += length) {
            parts.emplace_back(
                wanted.begin() + static_cast<std::ptrdiff_t>(begin),
                wanted.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(wanted.size(), begin + length)));
          }
          ASSERT_THAT(pieces[sample], ::testing::UnorderedElementsAreArray(parts)) << "text " << sample;
        }
      }
      // Each has more than a hundred rows.
      EXPECT_LT(train.stats().bytes_read, bytes);
    }
  }
}

TEST(packed, excluded_texts_leave_their_places_empty_and_move_no_other) {
  const watchdog dog("packed, excluded");
  const text_lines files;
  const tokenizer words = tokenizer_of("gpt2.json");
  const std::set<std::uint64_t> out = {3, 5, 31};
  for (const packed_by by : {packed_by::stream, packed_by::best_fit}) {
    testing::loader_options options = packing_options(50, {.by = by});
    options.on_corrupt = corrupt_policy::skip;
    const std::vector<packed_batch> whole = packed_run(files.opened(), options, words);
    const std::vector<packed_batch> left = packed_run(files.opened().exclude({3, 5, 31}), options, words);
    ASSERT_EQ(left.size(), whole.size());
    std::size_t emptied = 0;
    for (std::size_t b = 0; b < whole.size(); ++b) {
      std::vector<std::uint64_t> others;
      for (const std::uint64_t id : whole[b].ids) {
        if (!out.contains(id)) others.push_back(id);
      }
      EXPECT_EQ(left[b].ids, others);
      ASSERT_EQ(left[b].tokens.size(), whole[b].tokens.size());
      for (std::size_t at = 0; at < whole[b].tokens.size(); ++at) {
        if (left[b].tokens[at] == whole[b].tokens[at]) continue;
        EXPECT_EQ(left[b].tokens[at], no_token);
        ++emptied;
      }
    }
    std::size_t wanted = 0;
    for (const std::uint64_t sample : out)
      wanted += std::min<std::size_t>(wanted_tokens(words, sample).size(), by == packed_by::stream ? 1'000 : 50);
    EXPECT_EQ(emptied, 2 * wanted) << "in both epochs";
  }
}

TEST(packed, rows_are_the_same_in_all_worlds) {
  watchdog dog("packed in worlds");
  const text_lines files;
  const tokenizer words = tokenizer_of("gpt2.json");
  for (const packed_by by : {packed_by::stream, packed_by::best_fit}) {
    const testing::loader_options options = packing_options(50, {.by = by, .pool = 16});
    const std::vector<packed_batch> whole = packed_run(files.opened(), options, words);
    for (std::uint32_t size = 1; size <= 16; ++size) {
      dog.step("a world of " + std::to_string(size));
      std::vector<packed_batch> joined;
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        testing::loader_options own = options;
        own.world = {.rank = rank, .size = size};
        own.global_batch_size = options.batch_size;
        own.decode_threads = 1 + rank % 3;
        const std::vector<packed_batch> mine = packed_run(files.opened(), own, words);
        ASSERT_EQ(mine.size(), whole.size()) << "rank " << rank << " of " << size;
        joined.resize(mine.size());
        for (std::size_t b = 0; b < mine.size(); ++b) {
          joined[b].rows += mine[b].rows;
          const auto add = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
          add(joined[b].ids, mine[b].ids);
          add(joined[b].digests, mine[b].digests);
          add(joined[b].tokens, mine[b].tokens);
          add(joined[b].positions, mine[b].positions);
          add(joined[b].documents, mine[b].documents);
        }
      }
      for (std::size_t b = 0; b < whole.size(); ++b) {
        EXPECT_EQ(joined[b].rows, whole[b].rows);
        EXPECT_EQ(joined[b].ids, whole[b].ids);
        EXPECT_EQ(joined[b].digests, whole[b].digests);
        EXPECT_EQ(joined[b].tokens, whole[b].tokens) << "batch " << b << " of a world of " << size;
        EXPECT_EQ(joined[b].positions, whole[b].positions);
        EXPECT_EQ(joined[b].documents, whole[b].documents);
      }
    }
  }
}

TEST(packed, a_run_goes_on_at_any_batch_in_any_world_and_batch_at_is_the_same) {
  watchdog dog("packed and resumed");
  const text_lines files;
  const tokenizer words = tokenizer_of("gpt2.json");
  for (const packed_by by : {packed_by::stream, packed_by::first_fit}) {
    const testing::loader_options options = packing_options(64, {.by = by, .pool = 16});
    testing::loader undisturbed(files.opened(), options, as_tokens(words));
    const std::vector<packed_batch> whole = packed_run(undisturbed);
    for (std::size_t stop = 0; stop <= whole.size(); ++stop) {
      dog.step("stopped after " + std::to_string(stop));
      testing::loader first(files.opened(), options, as_tokens(words));
      for (std::size_t taken = 0; taken < stop;) {
        if (first.next_blocking()) ++taken;
      }
      testing::loader_options later = options;
      later.resume = loader_state::from_bytes(first.state().bytes());
      const std::vector<packed_batch> rest = packed_run(files.opened(), later, words);
      ASSERT_EQ(rest, std::vector<packed_batch>(whole.begin() + static_cast<std::ptrdiff_t>(stop), whole.end()))
          << "stopped after " << stop;
    }
    for (const packed_batch& each : whole) EXPECT_EQ(packed_of(undisturbed.batch_at(each.epoch, each.index)), each);
  }
}

TEST(packed, a_corrupt_text_leaves_its_place_empty) {
  const watchdog dog("packed and corrupt");
  const text_lines files;
  {
    std::ofstream more(files.path(), std::ios::app);
    more << R"({"number": 90})"
         << "\n";
  }
  const tokenizer words = tokenizer_of("gpt2.json");
  testing::loader_options options = packing_options(40);
  EXPECT_THAT(testing::message_of(errc::corrupt, [&] { packed_run(files.opened(), options, words); }),
              HasSubstr("'text'"));
  options.on_corrupt = corrupt_policy::skip;
  const std::vector<packed_batch> batches = packed_run(files.opened(), options, words);
  std::size_t in_all = 0;
  for (std::uint64_t sample = 0; sample < texts_in_all; ++sample) in_all += wanted_tokens(words, sample).size();
  for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
    std::size_t tokens = 0;
    std::size_t rows = 0;
    for (const packed_batch& each : batches) {
      if (each.epoch != epoch) continue;
      rows += each.rows;
      tokens += static_cast<std::size_t>(
          std::count_if(each.tokens.begin(), each.tokens.end(), [](std::int64_t token) { return token != no_token; }));
    }
    EXPECT_EQ(tokens, in_all);
    EXPECT_EQ(rows, (in_all + 1 + 39) / 40) << "the place of one token, which the text has not";
  }
}

TEST(packed, last_drop_leaves_out_a_batch_that_is_not_full) {
  const watchdog dog("packed and dropped");
  const text_lines files;
  const tokenizer words = tokenizer_of("gpt2.json");
  testing::loader_options options = packing_options(40);
  const std::vector<packed_batch> whole = packed_run(files.opened(), options, words);
  options.drop_last = true;
  const std::vector<packed_batch> full = packed_run(files.opened(), options, words);
  ASSERT_LT(full.size(), whole.size());
  for (const packed_batch& each : full) {
    EXPECT_EQ(each.rows, options.batch_size);
    EXPECT_EQ(std::count(whole.begin(), whole.end(), each), 1);
  }
  testing::loader train(files.opened(), options, as_tokens(words));
  std::size_t pieces = 0;
  for (const packed_batch& each : full) pieces += each.epoch == 0 ? each.ids.size() : 0;
  EXPECT_EQ(train.rows(), pieces);
}

TEST(packed, is_refused_where_it_cannot_be) {
  const text_lines files;
  const tokenizer words = tokenizer_of("gpt2.json");
  const auto refusal = [&](testing::loader_options options, std::vector<field> fields) {
    return testing::message_of(errc::usage, [&] { testing::loader(files.opened(), options, std::move(fields)); });
  };
  testing::loader_options options = packing_options(40);
  EXPECT_THAT(refusal(options, {label("number")}), HasSubstr("order packed: no field of the loader has tokens"));
  EXPECT_THAT(refusal(options, {as_tokens(words), tokenize("text", words).named("again")}),
              HasSubstr("and 'again' 1: fields that are packed together have the same lengths"));
  EXPECT_THAT(refusal(options, {as_tokens(words).pad(9)}), HasSubstr("rows are packed"));
  EXPECT_THAT(refusal(packing_options(1U << 30), {as_tokens(words)}), HasSubstr("whose places are i32"));
  options.on_corrupt = corrupt_policy::substitute;
  EXPECT_THAT(refusal(options, {as_tokens(words)}), HasSubstr("leaves that place empty"));
  options.on_corrupt = corrupt_policy::raise;
  options.last = last_batch::pad;
  EXPECT_THAT(refusal(options, {as_tokens(words)}), HasSubstr("give keep or drop"));
  EXPECT_THAT(testing::message_of(errc::usage, [] { static_cast<void>(packed(0)); }), HasSubstr("rows of 0 tokens"));
}

TEST(packed, each_of_its_options_changed_alone_is_refused_by_name) {
  const text_lines files;
  const tokenizer words = tokenizer_of("gpt2.json");
  const packed_options usual{.by = packed_by::best_fit};
  testing::loader before(files.opened(), packing_options(64, usual), as_tokens(words));
  const loader_state state = before.state();
  const auto refusal = [&](std::uint32_t length, const packed_options& by, const tokenize& texts_as) {
    testing::loader_options now = packing_options(length, by);
    now.resume = loader_state::from_bytes(state.bytes());
    return testing::message_of(errc::usage, [&] { testing::loader(files.opened(), now, texts_as); });
  };
  const auto with = [&](auto change) {
    packed_options other = usual;
    change(other);
    return refusal(64, other, as_tokens(words));
  };
  EXPECT_THAT(refusal(65, usual, as_tokens(words)), HasSubstr("the order's length is 65, and was 64"));
  EXPECT_THAT(with([](packed_options& to) { to.by = packed_by::first_fit; }), HasSubstr("the order's by is first_fit"));
  EXPECT_THAT(with([](packed_options& to) { to.by = packed_by::stream; }), HasSubstr("the order's by is stream"));
  EXPECT_THAT(with([](packed_options& to) { to.longer = longer_samples::skip; }), HasSubstr("longer is skip"));
  EXPECT_THAT(with([](packed_options& to) { to.pool = 5; }), HasSubstr("pool is 5, and was 4096"));
  EXPECT_THAT(with([](packed_options& to) { to.shuffle = false; }), HasSubstr("shuffle is false"));
  EXPECT_THAT(refusal(64, usual, tokenize("text", words).as(dtype::i64)), HasSubstr("the order's lengths"));
}

TEST(packed, counts_are_kept_and_made_anew_where_a_file_has_changed) {
  const watchdog dog("kept counts");
  const text_lines files;
  const testing::temporary_directory kept;
  const tokenizer words = tokenizer_of("gpt2.json");
  const auto age = [&](int hours) {
    std::filesystem::last_write_time(files.path(),
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  std::vector<index_report::outcome> reports;
  const auto seen = [&](const tokenize& as) {
    reports.clear();
    const index_options where{.use = index_use::check,
                              .directory = kept.path().string(),
                              .on_report = [&](const index_report& each) { reports.push_back(each.what); }};
    testing::loader train(files.opened(), packing_options(64), as.keep_counts(where));
    return packed_run(train);
  };
  using outcome = index_report::outcome;
  age(3);
  const std::vector<packed_batch> first = seen(as_tokens(words));
  EXPECT_EQ(reports, std::vector{outcome::written});
  EXPECT_EQ(seen(as_tokens(words)), first);
  EXPECT_EQ(reports, std::vector{outcome::used});
  EXPECT_NE(seen(as_tokens(words).truncate(9)), first) << "fewer tokens a text are other counts";
  EXPECT_EQ(reports, std::vector{outcome::written});
  // As many bytes, and other tokens.
  std::string content;
  {
    std::ifstream file(files.path());
    content.assign(std::istreambuf_iterator<char>(file), {});
  }
  for (std::size_t at = content.find(" the others"); at != std::string::npos; at = content.find(" the others", at)) {
    content.replace(at, 11, " q7 z9 j1 x");
  }
  std::ofstream(files.path()) << content;
  age(2);
  EXPECT_NE(seen(as_tokens(words)), first);
  EXPECT_EQ(reports, std::vector{outcome::written});
}

/// Four objects of five texts each, one of which may be lost.
class text_store final : public testing::memory_store {
 public:
  static constexpr std::uint64_t of_object = 5;
  static constexpr std::uint64_t texts = 20;

  void put_texts(std::uint64_t object, const std::string& more = "") {
    std::string lines;
    for (std::uint64_t i = object * of_object; i < (object + 1) * of_object; ++i) {
      lines += R"({"text": ")" + line_of(i) + more + "\"}\n";
    }
    const auto* const begin = reinterpret_cast<const std::byte*>(lines.data());
    put("texts" + std::to_string(object) + ".jsonl", {begin, begin + lines.size()});
  }
  boost::asio::awaitable<std::size_t> read(const std::string& name, std::uint64_t offset,
                                           std::span<std::byte> into) const override {
    if (name == "texts1.jsonl" && is_lost) throw error(errc::not_found, "it is lost");
    co_return co_await memory_store::read(name, offset, into);
  }
  std::atomic<bool> is_lost = false;
};

/// Registered once in a process.
text_store& store_of_texts() {
  static const std::shared_ptr<text_store> store = [] {
    auto made = std::make_shared<text_store>();
    for (std::uint64_t object = 0; object < text_store::texts / text_store::of_object; ++object)
      made->put_texts(object);
    register_store("packedtexts", made);
    return made;
  }();
  return *store;
}

// Its bytes cannot be had when tokens are counted. A later run that has them counts anew.
TEST(packed, a_text_that_cannot_be_read_follows_the_policy_when_tokens_are_counted) {
  const watchdog dog("unreadable and counted");
  text_store& store = store_of_texts();
  const testing::temporary_directory kept;
  const tokenizer words = tokenizer_of("gpt2.json");
  const auto opened = [] { return leat::open("packedtexts://texts{0..3}.jsonl"); };
  const dataset samples = opened();
  ASSERT_EQ(samples.size(), text_store::texts);
  std::vector<index_report::outcome> reports;
  const index_options where{.use = index_use::check,
                            .directory = kept.path().string(),
                            .on_report = [&](const index_report& each) { reports.push_back(each.what); }};
  const tokenize as = as_tokens(words).keep_counts(where);
  testing::loader_options options = packing_options(40);
  store.is_lost = true;
  EXPECT_THAT(testing::message_of(errc::not_found, [&] { testing::loader(samples, options, as); }),
              HasSubstr("texts1.jsonl"));
  options.on_corrupt = corrupt_policy::skip;
  std::size_t in_all = 0;
  std::size_t lost = 0;
  for (std::uint64_t i = 0; i < text_store::texts; ++i) {
    (i / text_store::of_object == 1 ? lost : in_all) += wanted_tokens(words, i).size();
  }
  const auto tokens_of = [&](const dataset& of) {
    testing::loader train(of, options, as);
    std::size_t tokens = 0;
    for (const packed_batch& each : packed_run(train)) {
      tokens += static_cast<std::size_t>(
          std::count_if(each.tokens.begin(), each.tokens.end(), [](std::int64_t token) { return token != no_token; }));
    }
    return tokens / 2;  // epochs
  };
  EXPECT_EQ(tokens_of(samples), in_all);
  EXPECT_TRUE(std::filesystem::is_empty(kept.path())) << "counts that another run may know better";
  store.is_lost = false;
  EXPECT_EQ(tokens_of(samples), in_all + lost);
  reports.clear();
  EXPECT_EQ(tokens_of(opened()), in_all + lost);
  EXPECT_EQ(reports, std::vector{index_report::outcome::used}) << "objects whose versions are known";
  store.put_texts(2, " and more");
  reports.clear();
  EXPECT_GT(tokens_of(opened()), in_all + lost);
  EXPECT_EQ(reports, std::vector{index_report::outcome::written}) << "another version";
  store.put_texts(2);
}

TEST(packed, a_text_that_no_batch_of_the_budget_can_hold_is_not_read_to_be_counted) {
  const watchdog dog("counted within a budget");
  const testing::temporary_directory directory;
  const std::string path = (directory.path() / "texts.jsonl").string();
  const tokenizer words = tokenizer_of("gpt2.json");
  constexpr std::size_t budget = std::size_t{24} << 20;
  {
    std::ofstream file(path);
    for (std::uint64_t i = 0; i < 20; ++i) {
      file << R"({"text": ")" << (i == 7 ? std::string(budget, 'a') : line_of(i)) << "\"}\n";
    }
  }
  testing::loader_options options = packing_options(40);
  options.host_bytes_max = budget;
  options.decode_threads = 1;
  options.on_corrupt = corrupt_policy::skip;
  options.batch_size = 4;
  std::size_t in_all = 0;
  for (std::uint64_t i = 0; i < 20; ++i) in_all += i == 7 ? 0 : wanted_tokens(words, i).size();
  std::size_t tokens = 0;
  for (const packed_batch& each : packed_run(leat::open(path), options, words)) {
    tokens += static_cast<std::size_t>(
        std::count_if(each.tokens.begin(), each.tokens.end(), [](std::int64_t token) { return token != no_token; }));
  }
  EXPECT_EQ(tokens, 2 * in_all);
}

TEST(packed, other_fields_have_a_row_for_each_piece) {
  const watchdog dog("packed beside labels");
  const text_lines files;
  const tokenizer words = tokenizer_of("gpt2.json");
  testing::loader train(files.opened(), packing_options(40), std::vector<field>{as_tokens(words), label("number")});
  while (std::optional<batch> got = train.next_blocking()) {
    const std::vector<std::int64_t> numbers = values_of<std::int64_t>(*got, "number");
    ASSERT_EQ(numbers.size(), got->ids().size());
    for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], static_cast<std::int64_t>(got->ids()[i]));
  }
}

TEST(balanced_cost, deals_the_same_rows_of_each_batch_so_that_ranks_have_as_much_to_compute) {
  watchdog dog("rows dealt by cost");
  const text_lines files;
  const tokenizer words = tokenizer_of("gpt2.json");
  constexpr std::uint32_t length = 40;
  for (const packed_by by : {packed_by::stream, packed_by::best_fit}) {
    testing::loader_options options = packing_options(length, {.by = by});
    options.batch_size = 12;
    const std::vector<packed_batch> plain = packed_run(files.opened(), options, words);
    options.order = balanced_cost(packed(length, {.by = by, .pad = no_token}));
    EXPECT_EQ(packed_run(files.opened(), options, words), plain) << "one rank has all rows, in their order";
    for (const std::uint32_t size : {2U, 3U, 4U}) {
      dog.step("a world of " + std::to_string(size));
      std::vector<std::vector<std::vector<std::int64_t>>> rows_dealt(plain.size());
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        testing::loader_options own = options;
        own.world = {.rank = rank, .size = size};
        own.global_batch_size = options.batch_size;
        testing::loader train(files.opened(), own, as_tokens(words));
        const std::vector<std::string>& notes = train.plan().notes;
        EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [&](const std::string& each) {
          return each.find("the slowest of " + std::to_string(size) + " ranks has") != std::string::npos;
        }));
        const std::vector<packed_batch> mine = packed_run(train);
        ASSERT_EQ(mine.size(), plain.size());
        for (std::uint32_t epoch = 0; epoch < 2; ++epoch) static_cast<void>(sequences_of(mine, epoch, length));
        for (std::size_t b = 0; b < mine.size(); ++b) {
          const world here{.rank = rank, .size = size};
          const auto all = static_cast<std::uint32_t>(plain[b].rows);
          EXPECT_EQ(mine[b].rows, here.row_end(all) - here.row_begin(all));
          for (std::size_t row = 0; row < mine[b].rows; ++row) {
            const auto begin = mine[b].tokens.begin() + static_cast<std::ptrdiff_t>(row * length);
            rows_dealt[b].emplace_back(begin, begin + length);
          }
        }
      }
      for (std::size_t b = 0; b < plain.size(); ++b) {
        std::vector<std::vector<std::int64_t>> rows;
        for (std::size_t row = 0; row < plain[b].rows; ++row) {
          const auto begin = plain[b].tokens.begin() + static_cast<std::ptrdiff_t>(row * length);
          rows.emplace_back(begin, begin + length);
        }
        ASSERT_THAT(rows_dealt[b], ::testing::UnorderedElementsAreArray(rows)) << "batch " << b;
      }
    }
  }
}

TEST(balanced_cost, deals_rows_of_one_text_by_their_tokens_and_says_what_it_lacks) {
  const watchdog dog("texts dealt by cost");
  const text_lines files;
  const tokenizer words = tokenizer_of("gpt2.json");
  testing::loader_options options = small_options();
  options.epochs = 1;
  options.batch_size = 6;
  options.global_batch_size = 24;
  options.order = balanced_cost(
      shuffled(), {.cost = [](std::uint64_t n) { return static_cast<double>(n); }, .name = "linear", .length = "text"});
  std::vector<std::vector<std::size_t>> sums(4);  // tokens of each rank's batches
  std::multiset<std::uint64_t> seen;
  std::vector<double> slowest;  // as each rank's stats say it
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    options.world = {.rank = rank, .size = 4};
    testing::loader train(files.opened(), options, as_tokens(words));
    while (std::optional<batch> got = train.next_blocking()) {
      sums[rank].push_back(values_of<std::int64_t>(*got, "text").size());
      seen.insert(got->ids().begin(), got->ids().end());
    }
    slowest.push_back(train.stats().slowest_rank_cost);
  }
  EXPECT_EQ(seen.size(), texts_in_all);
  EXPECT_EQ(std::set<std::uint64_t>(seen.begin(), seen.end()).size(), texts_in_all);
  double in_mean = 0;
  for (std::size_t b = 0; b < sums[0].size(); ++b) {
    const std::size_t of_batch[] = {sums[0][b], sums[1][b], sums[2][b], sums[3][b]};
    const auto all = static_cast<double>(std::accumulate(std::begin(of_batch), std::end(of_batch), std::size_t{0}));
    in_mean += static_cast<double>(*std::max_element(std::begin(of_batch), std::end(of_batch))) * 4 / all;
  }
  in_mean /= static_cast<double>(sums[0].size());
  for (const double each : slowest) EXPECT_NEAR(each, in_mean, 1e-9);
  // A text of 2,000 tokens may be one rank's alone; no other has more than it must.
  for (std::size_t b = 0; b + 1 < sums[0].size(); ++b) {
    std::vector<std::size_t> of_batch;
    for (const auto& each : sums) of_batch.push_back(each[b]);
    std::sort(of_batch.begin(), of_batch.end());
    EXPECT_LE(of_batch[2], of_batch[0] + of_batch[0] / 4 + 30) << "batch " << b;
  }
  const auto refusal = [&](const order& of) {
    options.order = of;
    return testing::message_of(errc::usage, [&] { testing::loader(files.opened(), options, as_tokens(words)); });
  };
  EXPECT_THAT(refusal(balanced_cost(shuffled())), HasSubstr("does not pack; say which lengths cost"));
  EXPECT_THAT(refusal(balanced_cost(packed(40), {.length = "text"})), HasSubstr("leave `length` out"));
  EXPECT_THAT(refusal(balanced_cost(packed(40), {.cost = [](std::uint64_t) { return -1.0; }, .name = "less"})),
              HasSubstr("the cost of"));
  options.last = last_batch::pad;
  EXPECT_THAT(refusal(balanced_cost(shuffled(), {.length = "text"})), HasSubstr("give keep or drop"));
}

/// The texts' tokens, made before: as lists of text, and as documents of a Megatron file.
class token_files {
 public:
  explicit token_files(const tokenizer& words) {
    std::ofstream lines(path("tokens.jsonl"));
    std::vector<std::int32_t> all;
    std::vector<std::int32_t> lengths;
    for (std::uint64_t i = 0; i < texts_in_all; ++i) {
      const std::vector<std::int32_t> tokens = wanted_tokens(words, i);
      lengths.push_back(static_cast<std::int32_t>(tokens.size()));
      all.insert(all.end(), tokens.begin(), tokens.end());
      lines << R"({"ids": )" << list_of(tokens, [](std::int32_t token) { return token; });
      lines << R"(, "labels": )" << list_of(tokens, [](std::int32_t token) { return token % 3 == 0 ? -100 : token; });
      lines << R"(, "fewer": [1]})" << "\n";
    }
    std::vector<std::int64_t> borders(texts_in_all + 1);
    std::iota(borders.begin(), borders.end(), 0);
    testing::write_file(path("tokens.bin"), testing::bytes_of(all));
    testing::write_file(path("tokens.idx"), testing::megatron_index(4, sizeof(std::int32_t), lengths, borders));
  }
  [[nodiscard]] dataset lines() const { return leat::open(path("tokens.jsonl")); }
  [[nodiscard]] dataset documents() const { return leat::open(path("tokens.bin")); }

 private:
  [[nodiscard]] std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  template <class Change>
  static std::string list_of(const std::vector<std::int32_t>& tokens, const Change& change) {
    std::string text;
    for (const std::int32_t token : tokens) text += (text.empty() ? "[" : ", ") + std::to_string(change(token));
    return text + "]";
  }

  testing::temporary_directory directory_;
};

sequence tokens_in(const std::string& member) { return sequence("text").from(member).as(dtype::i64).packed(); }

TEST(packed, tokens_that_were_made_before_have_the_rows_and_digests_of_their_texts) {
  watchdog dog("tokens made before");
  const text_lines texts;
  const tokenizer words = tokenizer_of("gpt2.json");
  const token_files files(words);
  for (const packed_by by : {packed_by::stream, packed_by::best_fit, packed_by::first_fit}) {
    for (const longer_samples longer : {longer_samples::cut, longer_samples::split}) {
      testing::loader_options options = packing_options(40, {.by = by, .longer = longer});
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        options.world = {.rank = rank, .size = 2};
        const std::vector<packed_batch> wanted = packed_run(texts.opened(), options, words);
        dog.step("lists of text");
        testing::loader of_lines(files.lines(), options, tokens_in("ids"));
        EXPECT_EQ(packed_run(of_lines), wanted);
        dog.step("documents");
        testing::loader of_documents(files.documents(), options, tokens_in("tokens"));
        EXPECT_EQ(packed_run(of_documents), wanted);
      }
    }
  }
}

TEST(packed, fields_of_the_same_lengths_lie_in_the_same_places) {
  const watchdog dog("labels beside tokens");
  const tokenizer words = tokenizer_of("gpt2.json");
  const token_files files(words);
  const testing::loader_options options = packing_options(40, {.by = packed_by::best_fit});
  testing::loader train(files.lines(), options, tokens_in("ids"), sequence("labels").packed().pad({.value = -100}));
  std::size_t labels_in_all = 0;
  while (const std::optional<batch> got = train.next_blocking()) {
    const std::vector<std::int64_t> tokens = values_of<std::int64_t>(*got, "text");
    const std::vector<std::int64_t> labels = values_of<std::int64_t>(*got, "labels");
    const std::vector<std::int32_t> documents = values_of<std::int32_t>(*got, "text.documents");
    ASSERT_EQ((*got)["labels"].shape, (*got)["text"].shape);
    EXPECT_THROW(static_cast<void>((*got)["labels.documents"]), error);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const bool is_label = documents[i] != -1 && tokens[i] % 3 != 0;
      ASSERT_EQ(labels[i], is_label ? tokens[i] : -100);
      labels_in_all += is_label ? 1 : 0;
    }
  }
  EXPECT_GT(labels_in_all, 100U);
}

TEST(packed, lists_of_tables_are_delivered_once) {
  const watchdog dog("packed lists");
  const std::string folder = std::string(LEAT_TEST_DATA) + "/parquet/";
  constexpr std::uint32_t length = 16;
  for (const char* name : {"lists-bare.parquet", "lists-zstd.parquet"}) {
    const dataset all_rows = leat::open(folder + name);
    std::vector<std::uint64_t> with_lists;  // null in the others
    for (std::uint64_t row = 0; row < all_rows.size(); ++row) {
      if (row % 11 != 2) with_lists.push_back(row);
    }
    const dataset lists = all_rows.subset(with_lists);
    testing::loader train(lists, packing_options(length, {.by = packed_by::best_fit, .longer = longer_samples::split}),
                          tokens_in("ids"));
    const std::vector<packed_batch> all = packed_run(train);
    std::map<std::uint64_t, std::vector<std::int32_t>> seen;
    for (const auto& [sample, tokens] : sequences_of(all, 0, length)) {
      seen[sample].insert(seen[sample].end(), tokens.begin(), tokens.end());
    }
    ASSERT_GT(lists.size(), 0U);
    for (std::uint64_t sample = 0; sample < lists.size(); ++sample) {
      const std::vector<std::byte> stored = lists.read(sample, "ids");
      std::vector<std::int32_t> wanted(stored.size() / sizeof(std::int32_t));
      if (!stored.empty()) std::memcpy(wanted.data(), stored.data(), stored.size());
      EXPECT_EQ(seen[sample], wanted) << name << ", sample " << sample;
    }
  }
}

TEST(packed, refuses_tokens_made_before_that_cannot_lie_there) {
  const tokenizer words = tokenizer_of("gpt2.json");
  const token_files files(words);
  const auto refusal = [&](const order& of, const auto&... fields) {
    testing::loader_options options = small_options();
    options.order = of;
    return testing::message_of(errc::usage, [&] { testing::loader(files.lines(), options, fields...); });
  };
  EXPECT_THAT(refusal(packed(40), tokens_in("ids"), sequence("fewer").packed()),
              HasSubstr("and 'fewer' 1: fields that are packed together have the same lengths"));
  EXPECT_THAT(refusal(packed(40), sequence("ids")), HasSubstr("leat::sequence(\"input_ids\").packed()"));
  EXPECT_THAT(refusal(shuffled(), tokens_in("ids")), HasSubstr("packed() is for an order that packs"));
  EXPECT_THAT(refusal(packed(40), tokens_in("ids").as(dtype::f32)), HasSubstr("i32 or i64"));
  EXPECT_THAT(refusal(packed(40), tokens_in("ids").pad({.max = 3})), HasSubstr("give a value alone"));
  EXPECT_THAT(refusal(packed(40), tokens_in("ids").mask()), HasSubstr("leave mask() and truncate() out"));
}

TEST(packed, tokens_made_before_that_are_damaged_are_left_out_and_counted) {
  const watchdog dog("damaged tokens");
  const testing::temporary_directory folder;
  const std::string path = (folder.path() / "tokens.jsonl").string();
  std::ofstream(path) << R"({"ids": [1, 2, 3]})" << "\n"
                      << R"({"ids": [4, 5000000000]})" << "\n"
                      << R"({"ids": []})" << "\n"
                      << R"({"ids": [6]})" << "\n";
  testing::loader_options options = testing::one_epoch_in_order();
  options.on_corrupt = corrupt_policy::skip;
  options.order = packed(8, {.shuffle = false, .pad = no_token});
  testing::loader train(leat::open(path), options, tokens_in("ids"));
  const std::vector<packed_batch> all = packed_run(train);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].tokens, (std::vector<std::int64_t>{1, 2, 3, no_token, 6, no_token, no_token, no_token}));
  EXPECT_EQ(all[0].ids, (std::vector<std::uint64_t>{0, 3}));
  EXPECT_EQ(train.stats().quarantined, 1U);
}

TEST(bucketed, counts_the_tokens_of_a_tokenize_field) {
  const watchdog dog("buckets of tokens");
  const text_lines files;
  const tokenizer words = tokenizer_of("gpt2.json");
  testing::loader_options options = small_options();
  constexpr std::uint64_t tokens_max = 1200;
  options.order = bucketed({.length = "text", .tokens_max = tokens_max, .rows_max = 64});
  testing::loader train(files.opened(), options, as_tokens(words));
  std::size_t rows = 0;
  for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
    while (std::optional<batch> got = train.next_blocking()) {
      const std::vector<std::int64_t> offsets = values_of<std::int64_t>(*got, "text.offsets");
      std::int64_t longest = 0;
      for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
        longest = std::max(longest, offsets[row + 1] - offsets[row]);
      }
      EXPECT_LE(static_cast<std::uint64_t>(longest) * got->valid_rows(), tokens_max);
      rows += got->valid_rows();
    }
  }
  EXPECT_EQ(rows, 2 * texts_in_all);
  options.order = bucketed({.length = "text", .tokens_max = 100});
  EXPECT_THAT(testing::message_of(errc::usage, [&] { testing::loader(files.opened(), options, as_tokens(words)); }),
              HasSubstr(std::to_string(wanted_tokens(words, 5).size())));
}

}  // namespace
}  // namespace leat
