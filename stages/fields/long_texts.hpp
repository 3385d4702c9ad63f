// The tokens of texts that lie in many packed rows: read and made once for all rows that come near one another, and not once a row.
#pragma once

#include "base/outcome.hpp"
#include "datasets/model/model.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace leat::datasets {
class blocking_sources;
}

namespace leat::stages {

/// Shared by the decode threads of a loader. Thread: any.
class long_texts {
 public:
  struct text {
    std::mutex mutex;  // while it is made: others that want it wait
    bool is_made = false;
    std::vector<std::uint32_t> ids;
    std::optional<failure> wrong;  // why there are none
  };
  /// The tokens of a text's bytes, or why there are none.
  using tokens_of = std::function<std::optional<failure>(std::span<const std::byte>, std::vector<std::uint32_t>&)>;

  long_texts();
  ~long_texts();

  /// What is kept of texts that nobody asks for at the moment; one is kept in any case.
  void keep_at_most(std::size_t bytes);

  /// Its tokens, of an earlier call if they are still kept.
  ///   fields    the first of them that it has
  ///   encoded   its bytes, where they were read; empty: they are read here
  ///   throws    datasets::read_failure, where the fault is the environment's
  [[nodiscard]] std::shared_ptr<const text> of(const datasets::dataset_model& dataset,
                                               std::span<const std::uint16_t> fields, std::uint64_t sample,
                                               std::span<const std::byte> encoded, const tokens_of& make);

 private:
  struct kept {
    std::uint64_t sample;
    std::shared_ptr<text> of;
    std::size_t bytes = 0;
  };

  [[nodiscard]] std::shared_ptr<text> find(std::uint64_t sample);
  void count(std::uint64_t sample, std::size_t bytes);
  [[nodiscard]] std::optional<failure> read(const datasets::dataset_model& dataset,
                                            std::span<const std::uint16_t> fields, std::uint64_t sample,
                                            std::vector<std::byte>& to);

  std::mutex mutex_;      // of what is kept
  std::list<kept> kept_;  // those asked for last in front
  std::unordered_map<std::uint64_t, std::list<kept>::iterator> places_;
  std::size_t bytes_ = 0;
  std::size_t bytes_max_ = std::size_t{32} << 20;
  std::mutex reading_;  // one at a time
  std::unique_ptr<datasets::blocking_sources> sources_;
};

}  // namespace leat::stages
