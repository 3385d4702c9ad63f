// What most orders are: an epoch is a row of places, cut into batches of one size.
#pragma once

#include "stages/order/batch_cut.hpp"
#include "stages/order/order_model.hpp"

#include <leat/sampler.hpp>

#include <cstdint>
#include <span>
#include <string_view>

namespace leat::stages {

class places_sampler : public sampler {
 public:
  ///   order    its name, which outlives it: for errors and descriptions
  ///   throws   error{errc::usage} for more than 2^48 places
  places_sampler(std::string_view order, std::uint64_t places, const order_context& context);

  /// Order, places and context; who is derived adds what it was made of.
  void describe(description& out) const override;

  [[nodiscard]] std::uint64_t batches(std::uint32_t /*epoch*/) const override { return cut_.batches(); }
  [[nodiscard]] std::uint32_t rows(std::uint32_t /*epoch*/, std::uint64_t batch) const override {
    return cut_.rows(batch);
  }
  [[nodiscard]] std::uint32_t rows_max() const override { return cut_.rows_max(); }
  [[nodiscard]] std::uint32_t padded(std::uint32_t /*epoch*/, std::uint64_t batch) const override {
    return cut_.padded(batch);
  }
  [[nodiscard]] std::uint64_t samples(std::uint32_t /*epoch*/) const override { return cut_.rows_of_all(); }
  void picks(std::uint32_t epoch, std::uint64_t batch, std::uint32_t row_begin, std::uint32_t row_end,
             std::span<pick> out) const override;
  /// Any place of the epoch, those that last_batch::drop leaves out as well.
  [[nodiscard]] std::uint64_t substitutes(std::uint32_t /*epoch*/, std::uint64_t /*batch*/) const override {
    return places_;
  }
  [[nodiscard]] pick substitute(std::uint32_t epoch, std::uint64_t batch, std::uint64_t n) const override;

 protected:
  [[nodiscard]] const batch_cut& cut() const noexcept { return cut_; }
  [[nodiscard]] std::uint64_t places() const noexcept { return places_; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return context_.seed; }
  /// What stands at places first, first + 1, ... of the epoch: one for each element of `out`, which has some.
  virtual void at(std::uint32_t epoch, std::uint64_t first, std::span<pick> out) const = 0;

 private:
  std::string_view order_;
  std::uint64_t places_;
  order_context context_;
  batch_cut cut_;
};

}  // namespace leat::stages
