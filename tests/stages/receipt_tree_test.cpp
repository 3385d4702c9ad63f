// What a receipt's root states, and what the proofs of names prove: of every name, in trees of all shapes; and that nothing else is
// proved by what was changed.
#include "stages/state/receipt_tree.hpp"

#include "tests/support/failures.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/temporary_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

std::string name_of(std::uint64_t sample) { return "shard/" + std::to_string(sample) + ".jpg"; }

digest digest_of(std::uint64_t seed) {
  digest made;
  testing::fill_seeded(seed, 0, std::as_writable_bytes(std::span(made.bytes)));
  return made;
}

/// A receipt of so many rows, of a few names more often than once.
class receipt_of_rows {
 public:
  explicit receipt_of_rows(std::uint64_t rows, bool reversed = false) {
    for (std::uint64_t row = 0; row < rows; ++row) {
      const std::uint64_t sample = row % 5 == 4 ? row / 50 : row;
      ++times_[name_of(sample)];
      rows_.push_back(receipt_row_of(name_of(sample), digest_of(row)));
    }
    if (reversed) std::reverse(rows_.begin(), rows_.end());
    receipts out(path(), {.seed = 7, .epochs = 1}, {});
    const std::size_t half = rows_.size() / 2;
    out.append(std::span(rows_).first(half));
    out.append(std::span(rows_).subspan(half));
    out.mark(1);
  }

  [[nodiscard]] std::string path() const { return (directory_.path() / "run.receipt").string(); }
  [[nodiscard]] std::uint64_t times(const std::string& name) const {
    const auto found = times_.find(name);
    return found == times_.end() ? 0 : found->second;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, times] : times_) all.push_back(name);
    return all;
  }
  void change(std::size_t at) const {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 1));
  }

 private:
  testing::temporary_directory directory_;
  std::map<std::string, std::uint64_t> times_;
  std::vector<receipt_row> rows_;
};

TEST(receipt_tree, proves_of_every_name_how_often_it_is_there) {
  for (const std::uint64_t rows : {0U, 1U, 2U, 63U, 64U, 65U, 128U, 129U, 500U, 1000U}) {
    SCOPED_TRACE(rows);
    const receipt_of_rows receipt(rows);
    std::vector<std::string> names = receipt.names();
    for (std::uint64_t i = 0; i < 200; ++i) names.push_back(name_of(100'000 + i));
    const sealed_receipt sealed = seal_receipt(receipt.path(), names, receipt_proofs::of_each_name);
    EXPECT_EQ(sealed.of.rows, rows);
    EXPECT_TRUE(sealed.of.ended);
    EXPECT_EQ(sealed.of.of.seed, 7U);
    ASSERT_EQ(sealed.proofs.size(), names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      const proved_rows proved = prove(sealed.of, names[i], sealed.proofs[i]);
      ASSERT_EQ(proved.root, sealed.root) << names[i];
      ASSERT_EQ(proved.rows.size(), receipt.times(names[i])) << names[i];
      ASSERT_EQ(sealed.rows[i], proved.rows);
    }
    const sealed_receipt looked_up = seal_receipt(receipt.path(), names);
    EXPECT_EQ(looked_up.root, sealed.root);
    EXPECT_EQ(looked_up.rows, sealed.rows);
    EXPECT_TRUE(looked_up.proofs.empty());
  }
}

TEST(receipt_tree, is_the_same_for_any_order_of_the_rows_and_any_memory) {
  const receipt_of_rows receipt(1000);
  const receipt_of_rows reversed(1000, true);
  const std::vector<std::string> names = {name_of(3), name_of(100'000)};
  const sealed_receipt sealed = seal_receipt(receipt.path(), names, receipt_proofs::of_each_name);
  EXPECT_EQ(seal_receipt(reversed.path(), names).root, sealed.root);
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{1600}, std::size_t{9000}}) {
    const sealed_receipt in_parts = seal_receipt(receipt.path(), names, receipt_proofs::of_each_name, bytes);
    EXPECT_EQ(in_parts.root, sealed.root) << bytes << " bytes";
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(in_parts.proofs[i].rows, sealed.proofs[i].rows);
      EXPECT_EQ(in_parts.proofs[i].siblings, sealed.proofs[i].siblings);
    }
  }
}

TEST(receipt_tree, has_a_root_that_states_each_row_and_what_the_run_was) {
  const receipt_of_rows receipt(200);
  const sealed_receipt sealed = seal_receipt(receipt.path(), {});
  const receipt_of_rows other(201);
  EXPECT_NE(seal_receipt(other.path(), {}).root, sealed.root);
  const std::vector<std::string> names = {name_of(3)};
  const receipt_proof proof = seal_receipt(receipt.path(), names, receipt_proofs::of_each_name).proofs.front();
  const auto root_of = [&](auto&& change) {
    receipt_statement of = sealed.of;
    change(of);
    return prove(of, names.front(), proof).root;
  };
  EXPECT_EQ(root_of([](receipt_statement&) {}), sealed.root);
  EXPECT_NE(root_of([](receipt_statement& of) { of.of.seed = 8; }), sealed.root);
  EXPECT_NE(root_of([](receipt_statement& of) { of.of.rank = 1; }), sealed.root);
  EXPECT_NE(root_of([](receipt_statement& of) { of.of.world = 2; }), sealed.root);
  EXPECT_NE(root_of([](receipt_statement& of) { of.of.epochs = 2; }), sealed.root);
  EXPECT_NE(root_of([](receipt_statement& of) { of.of.begin_epoch = 1; }), sealed.root);
  EXPECT_NE(root_of([](receipt_statement& of) { of.of.begin_batch = 1; }), sealed.root);
  EXPECT_NE(root_of([](receipt_statement& of) { of.of.content += 1; }), sealed.root);
  EXPECT_NE(root_of([](receipt_statement& of) { of.of.described.bytes[0] ^= 1; }), sealed.root);
  EXPECT_NE(root_of([](receipt_statement& of) { of.ended = false; }), sealed.root);
}

// Whether it proves anything by that root.
bool holds(const sealed_receipt& sealed, const std::string& name, const receipt_proof& proof) {
  try {
    return prove(sealed.of, name, proof).root == sealed.root;
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::corrupt);
    return false;
  }
}

TEST(receipt_tree, proves_nothing_by_a_proof_that_was_changed) {
  const receipt_of_rows receipt(1000);
  const std::vector<std::string> names = {name_of(3), name_of(100'000)};
  const sealed_receipt sealed = seal_receipt(receipt.path(), names, receipt_proofs::of_each_name);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const receipt_proof& good = sealed.proofs[i];
    ASSERT_TRUE(holds(sealed, names[i], good));
    ASSERT_FALSE(good.siblings.empty());
    for (std::size_t row = 0; row < good.rows.size(); ++row) {
      for (const std::size_t byte : {std::size_t{0}, std::size_t{11}, std::size_t{15}}) {
        receipt_proof bad = good;
        bad.rows[row].bytes[byte] ^= 1;
        EXPECT_FALSE(holds(sealed, names[i], bad)) << "row " << row;
      }
      receipt_proof bad = good;
      bad.rows.erase(bad.rows.begin() + static_cast<std::ptrdiff_t>(row));
      EXPECT_FALSE(holds(sealed, names[i], bad)) << "without row " << row;
    }
    for (std::size_t hash = 0; hash < good.siblings.size(); ++hash) {
      receipt_proof bad = good;
      bad.siblings[hash][31] ^= 1;
      EXPECT_FALSE(holds(sealed, names[i], bad)) << "hash " << hash;
    }
    receipt_proof bad = good;
    bad.siblings.pop_back();
    EXPECT_FALSE(holds(sealed, names[i], bad));
    bad = good;
    bad.siblings.push_back({});
    EXPECT_FALSE(holds(sealed, names[i], bad));
    for (const std::uint64_t block : {good.first_block + 1, good.first_block - 1, ~std::uint64_t{0}}) {
      bad = good;
      bad.first_block = block;
      EXPECT_FALSE(holds(sealed, names[i], bad)) << "block " << block;
    }
    bad = good;
    bad.rows.clear();
    EXPECT_FALSE(holds(sealed, names[i], bad));
    receipt_statement other = sealed.of;
    for (const std::uint64_t rows : {std::uint64_t{0}, std::uint64_t{64}, ~std::uint64_t{0}}) {
      other.rows = rows;
      EXPECT_THAT(message_of(errc::corrupt, [&] { static_cast<void>(prove(other, names[i], good)); }),
                  HasSubstr("does not hold"));
    }
  }
}

// A part of a tree that has no row of the name: it proves nothing, although all of its hashes are right.
TEST(receipt_tree, proves_no_absence_by_rows_elsewhere) {
  const receipt_of_rows receipt(1000);
  const std::vector<std::string> names = receipt.names();
  const sealed_receipt sealed = seal_receipt(receipt.path(), names, receipt_proofs::of_each_name);
  std::size_t refused = 0;
  for (std::size_t i = 1; i < names.size(); ++i) {
    const receipt_proof& elsewhere = sealed.proofs[i];
    const std::string& name = names.front();
    const receipt_row first = receipt_row_of(name, {});
    const bool has_it = std::any_of(elsewhere.rows.begin(), elsewhere.rows.end(), [&](const receipt_row& row) {
      return std::equal(row.bytes.begin(), row.bytes.begin() + receipt_row::key_bytes, first.bytes.begin());
    });
    if (has_it) continue;
    ASSERT_FALSE(holds(sealed, name, elsewhere)) << names[i];
    ++refused;
  }
  EXPECT_GT(refused, 500U);
}

TEST(receipt_file, that_was_changed_or_cut_is_refused) {
  constexpr std::uint64_t rows = 100;
  for (const std::size_t at : {std::size_t{24}, receipt_head::bytes, receipt_head::bytes + 16 * rows - 1}) {
    const receipt_of_rows receipt(rows);
    receipt.change(at);
    EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(seal_receipt(receipt.path(), {})); }),
                HasSubstr("does not match"))
        << "byte " << at;
  }
  const receipt_of_rows receipt(rows);
  const auto said_of = [&](std::uint64_t bytes) {
    std::filesystem::resize_file(receipt.path(), bytes);
    return message_of(errc::format, [&] { static_cast<void>(seal_receipt(receipt.path(), {})); });
  };
  EXPECT_THAT(said_of(receipt_head::bytes + 16 * (rows + 1)), HasSubstr("more than the 100 rows"));
  EXPECT_THAT(said_of(receipt_head::bytes + 16 * rows - 1), HasSubstr("has 99 rows of 100: it was cut"));
  EXPECT_THAT(said_of(100), HasSubstr("ends after 100 bytes: it was cut"));
  EXPECT_THAT(said_of(7), HasSubstr("is no receipt of a run"));
  EXPECT_THAT(said_of(0), HasSubstr("is no receipt of a run"));
}

TEST(receipt_file, of_a_process_that_was_killed_has_the_rows_up_to_then) {
  const testing::temporary_directory directory;
  const std::string path = (directory.path() / "r").string();
  const std::vector<receipt_row> rows = {receipt_row_of("a", {}), receipt_row_of("b", {})};
  const std::vector<std::string> names = {"b"};
  receipts open(path, {.epochs = 2}, {});
  open.append(rows);
  const sealed_receipt sealed = seal_receipt(path, names, receipt_proofs::of_each_name);
  EXPECT_EQ(sealed.of.rows, 2U);
  EXPECT_FALSE(sealed.of.ended);
  EXPECT_EQ(prove(sealed.of, "b", sealed.proofs.front()).rows.size(), 1U);
  std::ofstream(path, std::ios::app) << "torn";
  EXPECT_EQ(seal_receipt(path, names).root, sealed.root);
  EXPECT_THAT(message_of(errc::usage, [&] { receipts(path, {.epochs = 2}, {}); }),
              HasSubstr("give each rank a file of its own"));
}

TEST(receipt_file, is_gone_on_with_behind_the_rows_that_are_counted) {
  const testing::temporary_directory directory;
  const std::string path = (directory.path() / "r").string();
  const receipt_run run = {.seed = 1, .epochs = 2};
  const std::vector<receipt_row> rows = {receipt_row_of("a", {}), receipt_row_of("b", {}), receipt_row_of("c", {})};
  {
    receipts first(path, run, {});
    first.append(rows);
    first.close(1);
    receipts second(path, run, {.counted = 2, .epoch = 1, .goes_on = true});  // What is beyond two rows comes again.
    second.append(std::span(rows).subspan(2));
    second.close(2);
  }
  const testing::temporary_directory other;
  const std::string whole = (other.path() / "r").string();
  receipts at_once(whole, run, {});
  at_once.append(rows);
  at_once.close(2);
  const auto bytes_of = [](const std::string& of) {
    std::ifstream in(of, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_EQ(bytes_of(path), bytes_of(whole));
  const auto refused = [&](const std::string& of, const receipt_run& of_run, std::uint64_t count) {
    return message_of(errc::usage, [&] { receipts(of, of_run, {.counted = count, .epoch = 1, .goes_on = true}); });
  };
  EXPECT_THAT(refused(path, run, 4), HasSubstr("has fewer"));
  EXPECT_THAT(refused(path, {.seed = 2, .epochs = 2}, 2), HasSubstr("is of another run"));
  EXPECT_THAT(refused(path, {.names = 3, .seed = 1, .epochs = 2}, 2), HasSubstr("other names of these samples"));
  EXPECT_THAT(refused(path + "x", run, 2), HasSubstr("is not there"));
  EXPECT_EQ(bytes_of(path), bytes_of(whole)) << "nothing was lost";
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(receipt_head::bytes).put('x');
  EXPECT_THAT(refused(path, run, 3), HasSubstr("has been changed"));
}

}  // namespace
}  // namespace leat::stages
