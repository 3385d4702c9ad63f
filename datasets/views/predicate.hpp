// Which samples of a dataset a condition holds of, by what the dataset knows without reading a sample, and by the sizes of pictures.
#pragma once

#include "datasets/model/model.hpp"
#include "datasets/views/picture_sizes.hpp"
#include "datasets/views/predicate_text.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace leat::datasets {

/// What can be compared of a sample. A column goes before another thing of its name.
///   columns        numbers; of one with fewer bits than an f64, a number with a fraction is compared as such a one
///   class          the name of its class, a text
///   name           the sample's, a text: of shards a read each
///   sample         its number, from 0
///   width, height  of its only picture, as it is stored; jpg.width of one of several
///   jpg.bytes      of the value of a field, as long as no block has to be expanded to know it
/// A comparison with what a sample has not, or with a NaN, is neither true nor false, and so is its negation; `is null` is true of both.
/// Thread: one at a time.
class sample_predicate {
 public:
  ///   model    outlives this
  ///   throws   error{errc::usage} for a name that means nothing here, with those that do; for a number compared with a text
  sample_predicate(const dataset_model& model, parsed_predicate condition);
  sample_predicate(const sample_predicate&) = delete;  // Its literals are views of its text.
  sample_predicate& operator=(const sample_predicate&) = delete;

  [[nodiscard]] const std::string& text() const noexcept { return condition_.text; }

  enum class verdict : std::uint8_t { no, open, yes };
  /// Whether it is true of the sample; open, where that depends on sizes of pictures that no index has: asked() then has them.
  ///   throws   error{errc::usage}: the width of a sample with several pictures; error{errc::unsupported}: the bytes of a value that has to
  ///            be read first; as dataset::name()
  [[nodiscard]] verdict holds(std::uint64_t sample);

  /// What the samples that are open depend on, in their order.
  [[nodiscard]] const std::vector<asked_picture>& asked() const noexcept { return asked_; }
  /// From here on no sample is open.
  ///   sizes   of asked(); 0 x 0: null
  void take_sizes(std::vector<picture_size> sizes) noexcept { sizes_ = std::move(sizes); }

 private:
  enum class truth : std::uint8_t { no, unknown, yes };
  enum class source : std::uint8_t { number, text, column, class_name, name, sample, width, height, bytes };
  using known_value = std::variant<std::monostate, std::int64_t, double, std::string_view>;

  /// What the truth is between, as long as sizes are not known.
  struct range {
    truth least = truth::no;
    truth most = truth::no;
  };

  static constexpr std::size_t only_picture = ~std::size_t{0};
  /// Where a value comes from.
  ///   which   the column's or field's number, or only_picture; of a number or text that in numbers_ or texts_
  ///   at      of a size: where it stands
  struct operand {
    source from = source::number;
    std::size_t which = 0;
    std::size_t at = 0;
  };
  /// A node of the tree as it is evaluated.
  ///   wholes, texts   of `among`, sorted; reals are the others
  struct bound_node {
    predicate_kind kind = predicate_kind::all;
    std::vector<bound_node> inner = {};
    std::vector<operand> operands = {};
    std::vector<std::int64_t> wholes = {};
    std::vector<double> reals = {};
    std::vector<std::string_view> texts = {};
  };

  [[nodiscard]] bound_node bind(const predicate_node& node);
  void bind_list(const predicate_node& node, bound_node& to) const;
  [[nodiscard]] operand bind(const predicate_value& value, std::optional<dtype> compared_as);
  [[nodiscard]] operand find(const std::string& name, std::size_t at) const;
  [[nodiscard]] std::optional<dtype> type_of_column(const predicate_value& value) const;
  [[nodiscard]] static bool is_text(source from) noexcept;
  [[nodiscard]] std::vector<std::string> known_names() const;
  void check_numbers_of_classes(const predicate_value& column) const;

  [[nodiscard]] range evaluate(const bound_node& node);
  [[nodiscard]] truth compare(const bound_node& node);
  [[nodiscard]] truth among(const bound_node& node);
  [[nodiscard]] known_value value_of(const operand& of);
  [[nodiscard]] known_value size_of(const operand& of);
  [[nodiscard]] const part_list& parts();

  const dataset_model& model_;
  const parsed_predicate condition_;
  std::vector<known_value> literals_;
  bound_node root_;

  // Of the sample that is asked about.
  std::uint64_t sample_ = 0;
  bool has_parts_ = false;
  part_list parts_;
  std::optional<std::string> name_;
  bool lacks_size_ = false;  // what is compared

  std::vector<asked_picture> asked_;
  std::vector<picture_size> sizes_;
};

}  // namespace leat::datasets
