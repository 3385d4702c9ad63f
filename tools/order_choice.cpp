#include "tools/order_choice.hpp"

#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "tools/arguments.hpp"

#include <leat/error.hpp>
#include <leat/order.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace leat::tools {
namespace {

[[noreturn]] void refuse_choice(std::string_view option, std::string_view given, std::string_view why) {
  throw error(errc::usage, str_cat(option, " ", given, ": ", why));
}

std::vector<std::string> pieces_of(std::string_view text, char between) {
  std::vector<std::string> pieces;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(between, begin), text.size());
    pieces.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return pieces;
}

template <class Number>
Number number_of(const std::string& given, const std::string& text) {
  Number value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size() || !(value > 0)) {
    refuse_choice("--order", given,
                  str_cat("'", text, "' is no number from 1 to ", std::numeric_limits<Number>::max()));
  }
  return value;
}

// The column of balanced:COLUMN; empty for other orders.
std::string column_of(const order_choice& choice) {
  constexpr std::string_view balanced_name = "balanced:";
  return choice.order.starts_with(balanced_name) ? choice.order.substr(balanced_name.size()) : "";
}

// Of --pack and packed:.
std::optional<order> packed_order(const std::string& given, const std::vector<std::string>& pieces, bool shuffle) {
  if (pieces[0] != "packed" || pieces.size() < 2 || pieces.size() > 3) return std::nullopt;
  packed_options how{.shuffle = shuffle};
  if (pieces.size() == 3) {
    constexpr std::pair<std::string_view, packed_by> ways[] = {
        {"stream", packed_by::stream}, {"best_fit", packed_by::best_fit}, {"first_fit", packed_by::first_fit}};
    const auto* const found =
        std::find_if(std::begin(ways), std::end(ways), [&](const auto& way) { return way.first == pieces[2]; });
    if (found == std::end(ways)) return std::nullopt;
    how.by = found->second;
  }
  return packed(number_of<std::uint32_t>(given, pieces[1]), how);
}

order named_order(const std::string& given, bool shuffle) {
  const std::vector<std::string> pieces = pieces_of(given, ':');
  const auto is = [&](std::string_view name, std::size_t least, std::size_t most) {
    return pieces[0] == name && pieces.size() > least && pieces.size() <= most + 1;
  };
  if (is("sequential", 0, 0)) return sequential();
  if (is("shuffled", 0, 0)) return shuffled();
  if (is("shuffled_blocks", 1, 1)) return shuffled_blocks(number_of<std::uint32_t>(given, pieces[1]));
  if (is("repeated", 1, 1)) return repeated(number_of<std::uint32_t>(given, pieces[1]));
  if (is("balanced", 1, 1) && !pieces[1].empty()) return balanced(pieces[1]);
  if (is("bucketed", 2, 3) && !pieces[1].empty()) {
    return bucketed({.length = pieces[1],
                     .tokens_max = number_of<std::uint64_t>(given, pieces[2]),
                     .rows_max = pieces.size() > 3 ? number_of<std::uint32_t>(given, pieces[3]) : 0});
  }
  if (const std::optional<order> packs = packed_order(given, pieces, shuffle)) return *packs;
  refuse_choice("--order", given,
                "give sequential, shuffled, repeated:N, shuffled_blocks:N, balanced:COLUMN, "
                "bucketed:LENGTH:TOKENS_MAX[:ROWS_MAX], or packed:LENGTH[:best_fit|:first_fit]");
}

order mixture_order(const std::string& given, std::size_t sources) {
  std::vector<double> shares;
  for (const std::string& piece : pieces_of(given, ',')) {
    double share = 0;
    const auto [end, failure] = std::from_chars(piece.data(), piece.data() + piece.size(), share);
    if (failure != std::errc{} || end != piece.data() + piece.size() || !(share > 0) ||
        share > std::numeric_limits<double>::max()) {
      refuse_choice("--mixture", given, str_cat("'", piece, "' is no share; give numbers above 0, as 0.7,0.3"));
    }
    shares.push_back(share);
  }
  if (shares.size() != sources) {
    refuse_choice("--mixture", given,
                  str_cat(shares.size(), shares.size() == 1 ? " share for " : " shares for ", sources,
                          sources == 1 ? " source" : " sources", "; give one for each SOURCE"));
  }
  return mixed_by(std::move(shares));
}

}  // namespace

void add_order_choice(CLI::App& app, order_choice& choice) {
  CLI::Option* const drop = app.add_flag("--drop-last", choice.drop_last, "leave out a last batch that is not full");
  CLI::Option* const named = add_text(
      app, "--order", choice.order, "ORDER",
      "sequential, shuffled, repeated:N, shuffled_blocks:N, balanced:COLUMN, bucketed:LENGTH:TOKENS_MAX[:ROWS_MAX], "
      "packed:LENGTH[:best_fit|:first_fit]");
  CLI::Option* const blocks =
      app.add_option_function<std::string>(
             "--shuffle-blocks",
             [&choice](const std::string& given) {
               choice.order = "shuffled_blocks:" + given;
               choice.keeps_pool = true;
             },
             "blocks that samples share (chunks, shards) are shuffled, and the samples of N at a time: --order "
             "shuffled_blocks:N, in a budget that keeps N of them")
          ->type_name("N");
  blocks->excludes(named);
  CLI::Option* const pack =
      app.add_option_function<std::string>(
             "--pack", [&choice](const std::string& given) { choice.order = "packed:" + given; },
             "rows of LENGTH tokens that hold several texts, with --tokenizer: cut where a row ends, or whole by "
             "best_fit or first_fit (--order packed:LENGTH[:BY])")
          ->type_name("LENGTH[:BY]");
  pack->excludes(named)->excludes(blocks);
  app.add_flag("--balance-cost", choice.balances_cost,
               "of packed rows: each rank gets those of a batch by which all have as much attention to compute");
  CLI::Option* const mixed =
      add_text(app, "--mixture", choice.mixture, "SHARES", "of the sources, one for each: 0.7,0.3");
  mixed->excludes(named)->excludes(blocks)->excludes(pack);
  // --sticky is its name before, for one version more.
  for (const char* const name : {"--node-local", "--sticky"}) {
    CLI::Option* const by_node =
        app.add_option_function<std::string>(
               name,
               [&choice, name](const std::string& given) {
                 choice.nodes = static_cast<std::uint32_t>(
                     parse_number(name, given, 0, std::numeric_limits<std::uint32_t>::max()));
               },
               "each of N nodes reads its own share of the samples only, which its cache has to hold (0: as many nodes "
               "as the launcher says); some samples are left out of each epoch")
            ->type_name("N")
            ->excludes(mixed);
    if (std::string_view(name) == "--sticky") by_node->group("");
  }
  CLI::Option* const last = add_choice(app, "--last", choice.last,
                                       {{"keep", std::optional(last_batch::keep)},
                                        {"drop", std::optional(last_batch::drop)},
                                        {"pad", std::optional(last_batch::pad)}},
                                       "a last batch that is not full: smaller, left out, or filled from the epoch's "
                                       "beginning (keep)");
  for (const char* const in_short : {"--shuffle", "--no-shuffle"}) {
    named->excludes(app.get_option(in_short));
    blocks->excludes(app.get_option(in_short));
    mixed->excludes(app.get_option(in_short));
  }
  last->excludes(drop);
}

void set_order(loader_options& options, const order_options& order, const picture_options& pictures,
               const order_choice& choice, std::size_t sources) {
  options.batch_size = order.batch_size;
  options.seed = order.seed;
  options.shuffle = order.shuffled(pictures);
  options.drop_last = choice.drop_last;
  options.last = choice.last.value_or(last_batch::keep);
  if (!choice.mixture.empty()) {
    options.order = mixture_order(choice.mixture, sources);
  } else if (!choice.order.empty()) {
    options.order = named_order(choice.order, options.shuffle);
  }
  if (choice.balances_cost) {
    if (!options.order || options.order->name() != "packed") {
      throw error(errc::usage, "--balance-cost deals packed rows; give --pack LENGTH");
    }
    options.order = balanced_cost(*options.order);
  }
  if (choice.nodes) {
    const leat::order of = options.order ? *options.order : options.shuffle ? shuffled() : sequential();
    options.order = node_local(of, *choice.nodes);
  } else if (choice.keeps_pool) {
    options.order.reset();
    options.shuffle_blocks = number_of<std::uint32_t>(choice.order, pieces_of(choice.order, ':')[1]);
  }
}

std::string words_of(const order_options& order, const picture_options& pictures, const order_choice& choice) {
  const std::string nodes = choice.nodes.value_or(1) > 1 ? str_cat(", ", *choice.nodes, " nodes") : "";
  const std::string seed = str_cat(", seed ", order.seed, nodes);
  if (!choice.mixture.empty()) return str_cat("mixed ", choice.mixture, seed);
  if (choice.order == "sequential") return "in the source's order" + nodes;
  if (!choice.order.empty()) return choice.order + seed;
  return order.shuffled(pictures) ? "shuffled" + seed : "in the source's order" + nodes;
}

dataset samples_for_order(const order_choice& choice, const chosen_fields& fields) {
  const dataset& samples = fields.samples;
  if (!choice.mixture.empty() && fields.strays != 0) {
    refuse_choice("--mixture", choice.mixture,
                  str_cat(fields.strays,
                          " samples of the sources lack the fields that are loaded; "
                          "remove them, or `leat pack` the sources without them"));
  }
  const std::string column = column_of(choice);
  const datasets::dataset_model& model = *samples.model();
  if (column.empty() || model.find_column(column)) return samples;
  const std::optional<std::uint16_t> field = model.find_field(column);
  if (!field) return samples;  // The loader says which columns there are.
  if (model.fields()[*field].kind == field_kind::picture) {
    refuse_choice("--order", choice.order,
                  str_cat("'", column, "' is a picture; give a column, or a field of integers"));
  }
  return samples.with_column(column, read_column(samples, column));
}

}  // namespace leat::tools
