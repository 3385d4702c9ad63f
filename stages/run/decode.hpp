// One job is one sample: from its encoded parts to its finished row, start to end, on one thread.
#pragma once

#include "datasets/model/model.hpp"
#include "stages/batch/batch_layout.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/pixels/box.hpp"
#include "stages/pixels/scratch.hpp"
#include "stages/run/batch_in_flight.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::stages {

/// What every job needs to know.
struct decode_settings {
  std::uint64_t seed = 0;
  bool digests = false;
  bool names = false;
  bool receipts = false;  ///< with digests
};

/// The decode stage: programs, and each thread's own scratch. Refers to its arguments, which the loader keeps.
class decoder {
 public:
  decoder(const datasets::dataset_model& dataset, std::span<const std::unique_ptr<field_program>> programs,
          const batch_layout& layout, const decode_settings& settings, pixels::scratch_budget& budget,
          std::uint32_t threads);

  /// Makes the rows [first, end) of a batch, without digests or names, up to the first that is corrupt, of which run() then finds the
  /// reason. What throws is noted with its sample.
  ///   returns   the corrupt row, or `end`
  /// Thread: as run().
  [[nodiscard]] std::uint32_t make_rows(batch_in_flight& batch, std::uint32_t first, std::uint32_t end,
                                        std::uint32_t thread, const std::atomic<bool>& stop) noexcept;

  /// Decodes one sample into its row of the batch; a corrupt one, and one that the budget cannot hold, is marked with
  /// the reason. What throws here (memory, a user's function) concerns the whole run.
  /// Thread: decode thread `thread`, one sample at a time per thread.
  void run(sample_in_flight& sample, std::uint32_t thread, const std::atomic<bool>& stop);

  /// Makes one program's row of a value out of a block (datasets::part_form::value). What is wrong with it becomes one of the
  /// block's faults, since the sample may be in other hands.
  /// Thread: as run().
  void make_of_block(block_in_flight& block, const block_in_flight::use& use, std::span<const std::byte> expanded,
                     std::uint32_t thread, const std::atomic<bool>& stop);

  /// CPU spent on digests so far.
  [[nodiscard]] std::uint64_t digest_ns() const noexcept { return digest_ns_.load(std::memory_order_relaxed); }
  /// Of rows that are stored bytes as they are, and were not read straight to their place (loader_stats::bytes_copied).
  [[nodiscard]] std::uint64_t bytes_copied() const noexcept;

 private:
  struct thread_state {
    std::vector<std::unique_ptr<field_scratch>> scratch;  // one per program; null for those that have another one's
    std::vector<row_target> rows;                         // one per output
    std::vector<std::vector<std::byte>> produced;     // one per program: bytes that a call makes, or that were expanded
    std::vector<std::span<const std::byte>> encoded;  // one per program: they, or what was read
    std::vector<decode_share> together;
    struct boxes_seen {
      std::vector<pixels::box> made;
      pixels::picture_boxes seen;
    };
    std::vector<boxes_seen> boxes;               // one per program whose crops look at boxes
    std::vector<std::vector<std::byte>> made;    // for digests: a row of each output that a device makes
    std::atomic<std::uint64_t> bytes_copied{0};  // written by this thread alone
  };

  void decode_fields(sample_in_flight& sample, thread_state& own, const std::atomic<bool>& stop) const;
  /// The same where plain_: short rows, as windows of tokens, take no longer to write than all that there is to look for.
  void decode_plain(sample_in_flight& sample, thread_state& own, const std::atomic<bool>& stop) const;
  void take_held(sample_in_flight& sample, thread_state& own, const std::atomic<bool>& stop) const;
  /// Finds the bytes of all programs, and the boxes that crops look at. False where the sample is corrupt.
  [[nodiscard]] bool look_at_boxes(sample_in_flight& sample, thread_state& own) const;
  /// Notes how much of the program's row is used, where a block has made it; false where it was not made of a block.
  [[nodiscard]] bool take_row_of_block(const sample_in_flight& sample, std::size_t program, thread_state& own) const;
  /// find_encoded(). False where the sample is corrupt.
  [[nodiscard]] bool find_or_refuse(sample_in_flight& sample, std::size_t program, thread_state& own) const;
  /// Of the programs that follow a picture, when all others have made theirs. False where the sample is corrupt.
  [[nodiscard]] bool make_following(sample_in_flight& sample, thread_state& own, const std::atomic<bool>& stop) const;
  /// Which part of its row each picture is shown in, where rows become mosaics.
  void note_shown(const sample_in_flight& sample, const thread_state& own, const std::atomic<bool>& stop) const;
  void refuse(sample_in_flight& sample, std::size_t program, const failure& why) const;
  /// Where the geometry of the program's picture is; null where it makes none.
  [[nodiscard]] picture_geometry* geometry_of(batch_in_flight& batch, std::uint32_t row, std::size_t program) const;
  /// Of values whose head was read apart from the rest: brings it to where it belongs, as far before the rest as in the file.
  static void join_pieces(batch_in_flight& batch, const sample_in_flight& sample);
  void place_rows(const sample_in_flight& sample, thread_state& own) const;
  [[nodiscard]] std::span<row_target> rows_of(std::size_t program, thread_state& own) const {
    return {own.rows.data() + first_output_[program], programs_[program]->outputs().size()};
  }
  [[nodiscard]] std::optional<value_fault> find_encoded(const sample_in_flight& sample, std::size_t program,
                                                        thread_state& own) const;
  [[nodiscard]] std::span<const std::byte> boxes_of(const sample_in_flight& sample, std::size_t program,
                                                    thread_state& own) const;
  [[nodiscard]] std::optional<value_fault> expand(const sample_in_flight& sample, std::size_t program,
                                                  std::uint16_t field, thread_state& own) const;
  /// Of what own.encoded[program] has.
  [[nodiscard]] decode_input input_of(const sample_in_flight& sample, std::size_t program, const thread_state& own,
                                      const std::atomic<bool>& stop) const;
  /// Its rows are made.
  void note_used(batch_in_flight& batch, std::uint32_t row, std::size_t program, thread_state& own) const;
  void count_made(batch_in_flight& batch, std::uint32_t row, std::size_t program, std::size_t encoded_bytes,
                  thread_state& own) const;
  [[nodiscard]] bool decode_together(std::size_t leader, const decode_input& input, batch_in_flight& batch,
                                     std::uint32_t row, thread_state& own) const;
  void add_digest(sample_in_flight& sample, thread_state& own);
  [[nodiscard]] std::span<const std::byte> made_row(std::size_t output, thread_state& own) const;
  /// A sample's name, file and offset, for messages.
  struct address {
    std::string name;
    std::string source;
    std::optional<std::uint64_t> offset;
  };
  [[nodiscard]] address find(const pick& of, std::uint16_t field_at_fault) const;
  void describe_corrupt(sample_in_flight& sample) const;
  void describe_out_of_memory(sample_in_flight& sample) const;

  const datasets::dataset_model& dataset_;
  std::span<const std::unique_ptr<field_program>> programs_;
  const batch_layout& layout_;
  const std::vector<std::uint16_t>
      leaders_;  // of each program: the program whose decode also makes its rows, if one pass can make both
  const std::vector<std::uint16_t> scratch_of_;  // of each program: whose scratch it decodes with
  std::vector<std::uint16_t> followers_;         // of each program: how many others its decode makes
  std::vector<std::size_t> first_output_;        // of each program
  const std::vector<std::uint16_t> pictures_;    // of each program: the one that it follows, or itself
  const std::vector<std::uint16_t> boxed_by_;    // of each program: the one whose boxes its crops look at, or itself
  bool looks_at_boxes_ = false;                  // some do
  const bool plain_;                             // one program, and nothing to do for its rows but decode()
  const std::optional<std::size_t> shown_;       // the output of pixel_box, where rows become mosaics
  decode_settings settings_;
  std::vector<thread_state> threads_;
  std::atomic<std::uint64_t> digest_ns_{0};
};

}  // namespace leat::stages
