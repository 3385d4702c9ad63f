// What a view passes on to the datasets behind it, whose samples and fields have other numbers.
#pragma once

#include "datasets/model/model.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace leat::datasets {

///   View   has at(sample), a place; inner_field(place, field) and inner_part(place, part), as they are called there
template <class View>
class passed_on : public expanding_facet, public making_facet, public packing_facet, public windows_facet {
 public:
  std::optional<value_fault> expand(std::uint64_t sample, const part& of, std::span<const std::byte> stored,
                                    std::span<std::byte>& decoded) const override {
    const auto at = view().at(sample);
    return at.model.expand(at.sample, view().inner_part(at, of), stored, decoded);
  }
  void copy_box(std::uint64_t sample, const part& of, const box* within, std::span<const std::byte> decoded,
                std::span<std::byte> bytes) const override {
    const auto at = view().at(sample);
    at.model.copy_box(at.sample, view().inner_part(at, of), within, decoded, bytes);
  }
  std::optional<value_fault> take_value(std::uint64_t sample, const part& of, std::span<const std::byte> decoded,
                                        std::span<std::byte>& bytes) const override {
    const auto at = view().at(sample);
    return at.model.take_value(at.sample, view().inner_part(at, of), decoded, bytes);
  }

  std::span<const std::byte> produce(std::uint64_t sample, std::uint16_t field,
                                     std::vector<std::byte>& scratch) const override {
    const auto at = view().at(sample);
    return at.model.produce(at.sample, view().inner_field(at, field), scratch);
  }
  boost::asio::awaitable<std::vector<std::vector<std::byte>>> fetch(std::uint64_t sample,
                                                                    std::vector<std::uint16_t> fields) const override {
    const auto at = view().at(sample);
    for (std::uint16_t& field : fields) field = view().inner_field(at, field);
    return at.model.fetch(at.sample, std::move(fields));
  }
  std::uint16_t fetch_group(std::uint64_t sample, std::uint16_t field) const override {
    const auto at = view().at(sample);
    return at.model.fetch_group(at.sample, view().inner_field(at, field));
  }

  std::vector<member_path> members(std::uint64_t sample, std::span<const std::uint16_t> fields,
                                   blocking_sources& from) const override {
    const auto at = view().at(sample);
    std::vector<std::uint16_t> inner;
    for (const std::uint16_t field : fields) inner.push_back(view().inner_field(at, field));
    return at.model.members(at.sample, inner, from);
  }
  std::uint64_t header_offset(std::uint64_t sample, const extent& part) const override {
    const auto at = view().at(sample);
    return at.model.header_offset(at.sample, part);
  }

  window_number window_of(std::uint64_t sample) const override {
    const auto at = view().at(sample);
    return at.model.window_of(at.sample);
  }

 protected:
  /// Of a sample of the view.
  struct place {
    const dataset_model& model;
    std::uint64_t sample;
  };

  /// Sets those that `behind` has.
  void pass_on(const model_facets& behind, model_facets& mine) const {
    if (behind.expanding != nullptr) mine.expanding = this;
    if (behind.making != nullptr) mine.making = this;
    if (behind.windows != nullptr) mine.windows = this;
    mine.packing = this;  // Names of members need names of fields, which every dataset has.
  }
  ~passed_on() = default;

 private:
  [[nodiscard]] const View& view() const noexcept { return static_cast<const View&>(*this); }
};

}  // namespace leat::datasets
