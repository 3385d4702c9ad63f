// A Merkle tree over the sorted rows of a receipt: its root states them all, and a few of its hashes prove of a name how many of
// them it has.
//
//   leaf    SHA-256 of a byte 0 and a block: 64 rows, the last block what is left; one empty block where there is no row
//   node    SHA-256 of a byte 1 and both children; of n leaves the left one has the largest power of two below n (RFC 6962)
//   root    SHA-256 of a byte 2, what the receipt is of, and the topmost node
//
// A name's proof has the blocks of its rows with the row before them and the one behind them: between these there is no other of
// this name. That the rows are sorted everywhere else is for who has the file to see: seal_receipt() sorts them itself.
#pragma once

#include "base/sha256.hpp"
#include "stages/state/receipts.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::stages {

/// What a root states besides the rows.
///   ended   they are all rows of the run
struct receipt_statement {
  receipt_run of;
  std::uint64_t rows = 0;
  bool ended = false;
};

/// Rows of one or more whole blocks, sorted.
///   siblings   the nodes that are missing for the root, from left to right
struct receipt_proof {
  std::uint64_t first_block = 0;
  std::vector<receipt_row> rows;
  std::vector<sha256> siblings;
};

///   rows, proofs   of each name
struct sealed_receipt {
  receipt_statement of;
  sha256 root{};
  std::vector<std::vector<receipt_row>> rows;
  std::vector<receipt_proof> proofs;
};

enum class receipt_proofs : bool { none, of_each_name };

/// Reads a receipt and makes its root, and looks up the names.
///   bytes_max   of rows that are sorted at once: the file is read as many times as it takes. Hashes take a byte a row besides, and a
///               proof 2 KiB
///   throws      error{errc::format}: no receipt, a damaged one, one that was cut; errc::unsupported; as io::explain_open(), explain_read()
[[nodiscard]] sealed_receipt seal_receipt(const std::string& path, std::span<const std::string> names,
                                          receipt_proofs wanted = receipt_proofs::none,
                                          std::size_t bytes_max = std::size_t{512} << 20U);

/// What a proof proves.
///   rows   of the name: the digests of these rows begin with their last 4 bytes
struct proved_rows {
  std::vector<receipt_row> rows;
  sha256 root{};
};

///   throws   error{errc::corrupt}, with why: it does not prove anything of this name
[[nodiscard]] proved_rows prove(const receipt_statement& of, std::string_view name, const receipt_proof& by);

}  // namespace leat::stages
