// graph: nodes and edges of each sample, joined to one graph of the batch.
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/number_list.hpp"

#include <leat/error.hpp>
#include <leat/field.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace leat {
namespace stages {
namespace {

constexpr std::size_t index_bytes = sizeof(std::int64_t);

/// A member whose numbers are rows of `width`: nodes, edges (in two lists) or attributes of edges.
class rows_program : public field_program, ragged_facet {
 public:
  enum class kind : std::uint8_t { features, two_lists };
  struct source {
    std::uint16_t field = 0;
    std::optional<dtype> stored;
    kind what = kind::features;
    std::size_t width = 1;
  };

  rows_program(std::vector<output_spec> outputs, const source& from)
      : field_program(std::move(outputs), {from.field}), from_(from) {
    facets_.ragged = this;
  }

  std::size_t ragged_bytes(std::size_t output, std::size_t encoded_bytes) const override {
    const std::size_t elements = elements_max(from_.stored, encoded_bytes);
    if (output == 0 || from_.what == kind::two_lists) return elements * size_bytes(outputs_[output].type);
    return (elements + from_.width - 1) / from_.width * index_bytes;  // which graph each node is of
  }
  outcome<void> decode(field_scratch&, const decode_input& input, std::span<row_target> rows) const override {
    std::optional<std::string> reason;
    with_type(outputs_.front().type, [&](auto zero) { reason = fill<decltype(zero)>(input.encoded, rows.front()); });
    if (reason) return corrupt(std::move(*reason));
    return {};
  }

 private:
  template <class To>
  std::optional<std::string> fill(std::span<const std::byte> encoded, row_target& to) const {
    row_writer<To> row{.at = to.bytes.data(), .room = to.bytes.size() / sizeof(To)};
    const std::string_view text(reinterpret_cast<const char*>(encoded.data()), encoded.size());
    inner_lists lists;
    auto reason = from_.stored ? read_stored(encoded, *from_.stored, row) : read_text(text, row, &lists);
    if (reason) return reason;
    if (row.count > row.room) return str_cat("has ", row.count, " numbers, more than ", row.room);
    if (lists.count != 0 && lists.count * lists.length != row.count) return "has numbers beside its lists";
    if (from_.what == kind::two_lists && lists.count != 0 && lists.count != 2) {
      return str_cat("has ", lists.count, " lists; edges are two, of where each begins and of where it ends");
    }
    if (from_.what == kind::features && lists.count != 0 && lists.length != from_.width) {
      return str_cat("has lists of ", lists.length, " numbers where a row has ", from_.width);
    }
    if (row.count % from_.width != 0) return str_cat("has ", row.count, " numbers, no multiple of ", from_.width);
    to.used = row.count * sizeof(To);
    return std::nullopt;
  }

  source from_;
};

/// Looks at the whole sample, and makes what is of the whole batch. The programs behind it have the edges.
class nodes_program final : public rows_program, checking_facet, finishing_facet {
 public:
  enum output : std::size_t { x, batch, edges, edge_index, edge_attr };

  nodes_program(std::vector<output_spec> outputs, const source& from, std::size_t node_bytes,
                std::size_t attribute_bytes)
      : rows_program(std::move(outputs), from), node_bytes_(node_bytes), attribute_bytes_(attribute_bytes) {
    facets_.checking = this;
    facets_.finishing = this;
  }

  std::optional<std::string> check(const decode_input&, std::span<row_target> rows) const override {
    const auto nodes = static_cast<std::int64_t>(rows[x].used / node_bytes_);
    const std::size_t ends = rows[edges].used / index_bytes;
    const auto* const end = reinterpret_cast<const std::int64_t*>(rows[edges].bytes.data());
    const auto* const wrong =
        std::find_if(end, end + ends, [&](std::int64_t node) { return node < 0 || node >= nodes; });
    if (wrong != end + ends) {
      return str_cat("an edge to node ", *wrong, " of ", nodes, ", which are numbered from 0");
    }
    if (attribute_bytes_ == 0 || rows[edge_attr].used / attribute_bytes_ == ends / 2) return std::nullopt;
    return str_cat("has ", ends / 2, " edges, and attributes of ", rows[edge_attr].used / attribute_bytes_);
  }

  void finish(finished_rows& all) const override {
    std::size_t edge_count = 0;
    for (std::uint32_t row = 0; row < all.rows(); ++row) edge_count += all.row(edges, row).size() / index_bytes / 2;
    auto* graph_of = reinterpret_cast<std::int64_t*>(all.room(batch).data());
    auto* from = reinterpret_cast<std::int64_t*>(all.room(edge_index).data());
    auto* to = from + edge_count;
    std::int64_t nodes_before = 0;
    for (std::uint32_t row = 0; row < all.rows(); ++row) {
      const auto nodes = static_cast<std::int64_t>(all.row(x, row).size() / node_bytes_);
      graph_of = std::fill_n(graph_of, nodes, std::int64_t{row});
      const std::span<const std::byte> bytes = all.row(edges, row);
      const std::size_t count = bytes.size() / index_bytes / 2;
      const auto* const ends = reinterpret_cast<const std::int64_t*>(bytes.data());
      for (std::size_t i = 0; i < count; ++i) from[i] = ends[i] + nodes_before;
      for (std::size_t i = 0; i < count; ++i) to[i] = ends[count + i] + nodes_before;
      from += count;
      to += count;
      nodes_before += nodes;
    }
    all.made(batch, {nodes_before});
    all.made(edge_index, {2, static_cast<std::int64_t>(edge_count)});
  }

 private:
  std::size_t node_bytes_;
  std::size_t attribute_bytes_;  // of an edge; 0: it has none
};

class graph_model final : public field_model {
 public:
  explicit graph_model(graph::settings settings) : settings_(std::move(settings)) {}

  const std::string& name() const noexcept override { return settings_.x.member; }
  void describe(description& out) const override {
    out.add("kind", "graph");
    describe(out, "x", settings_.x);
    out.add("edge_index", settings_.edge_index);
    if (settings_.edges_stored) out.add("edge_index.stored", leat::name(*settings_.edges_stored));
    if (settings_.edge_attr) describe(out, "edge_attr", *settings_.edge_attr);
  }
  void bind(const datasets::dataset_model& dataset, finished_by,
            std::vector<std::unique_ptr<field_program>>& out) const override {
    using kind = rows_program::kind;
    const graph::features& x = settings_.x;
    const auto width_of = [](const graph::features& of) { return static_cast<std::size_t>(of.width); };
    const auto bytes_of = [&](const graph::features& of) { return width_of(of) * size_bytes(of.type); };
    check(x);
    if (settings_.edge_attr) check(*settings_.edge_attr);
    std::vector<output_spec> nodes{
        {.name = "x", .type = x.type, .row_shape = {x.width}, .ragged = true, .offsets_name = "ptr"},
        {.name = "batch", .type = dtype::i64, .ragged = true, .of_batch = true}};
    out.push_back(std::make_unique<nodes_program>(
        std::move(nodes), source_of(dataset, x.member, x.stored, kind::features, width_of(x)), bytes_of(x),
        settings_.edge_attr ? bytes_of(*settings_.edge_attr) : 0));
    std::vector<output_spec> edges{{.name = "graph.edges", .type = dtype::i64, .ragged = true, .hidden = true},
                                   {.name = "edge_index", .type = dtype::i64, .ragged = true, .of_batch = true}};
    out.push_back(std::make_unique<rows_program>(
        std::move(edges), source_of(dataset, settings_.edge_index, settings_.edges_stored, kind::two_lists, 2)));
    if (!settings_.edge_attr) return;
    const graph::features& attr = *settings_.edge_attr;
    std::vector<output_spec> attributes{
        {.name = "edge_attr", .type = attr.type, .row_shape = {attr.width}, .ragged = true}};
    out.push_back(std::make_unique<rows_program>(
        std::move(attributes), source_of(dataset, attr.member, attr.stored, kind::features, width_of(attr))));
  }

 private:
  static void describe(description& out, std::string_view what, const graph::features& of) {
    out.add(what, of.member);
    out.add(str_cat(what, ".width"), of.width);
    out.add(str_cat(what, ".type"), leat::name(of.type));
    if (of.stored) out.add(str_cat(what, ".stored"), leat::name(*of.stored));
  }
  static void check(const graph::features& of) {
    constexpr std::int64_t width_max = std::int64_t{1} << 32;
    if (of.width < 1 || of.width > width_max) {
      throw error(errc::usage, str_cat("graph: '", of.member, "' with ", of.width, " features; give at least 1"));
    }
    if (!has_numbers(of.type)) refuse_type(of.type);
  }
  [[noreturn]] static void refuse_type(dtype type) {
    throw error(errc::usage, str_cat("a graph of ", leat::name(type), "; it has u8 to i64, f32 or f64"));
  }
  static rows_program::source source_of(const datasets::dataset_model& dataset, const std::string& member,
                                        std::optional<dtype> stored, rows_program::kind what, std::size_t width) {
    const std::optional<std::uint16_t> field = dataset.find_field(member);
    if (!field) throw_no_field(dataset, member, "graph");
    if (!stored) stored = stored_type_of(dataset.fields()[*field]);
    if (stored && !has_numbers(*stored)) refuse_type(*stored);
    return {.field = *field, .stored = stored, .what = what, .width = width};
  }

  graph::settings settings_;
};

}  // namespace
}  // namespace stages

graph graph::x(features of) const {
  graph changed = *this;
  changed.settings_.x = std::move(of);
  return changed;
}
graph graph::edge_index(std::string member, std::optional<dtype> stored) const {
  graph changed = *this;
  changed.settings_.edge_index = std::move(member);
  changed.settings_.edges_stored = stored;
  return changed;
}
graph graph::edge_attr(features of) const {
  graph changed = *this;
  changed.settings_.edge_attr = std::move(of);
  return changed;
}
graph::operator field() const { return field(std::make_shared<stages::graph_model>(settings_)); }

}  // namespace leat
