// --order, --shuffle-blocks, --mixture, --node-local, --last and --drop-last: which order a command takes the samples in.
#pragma once

#include "tools/fields.hpp"

#include <leat/loading.hpp>
#include <leat/order.hpp>
#include <leat/samples.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace leat::tools {

struct order_choice {
  std::string order;        ///< as given; empty: none
  bool keeps_pool = false;  ///< by --shuffle-blocks, of which `order` is the long form
  std::string mixture;      ///< likewise
  std::optional<std::uint32_t> nodes;
  std::optional<last_batch> last;
  bool drop_last = false;
  bool balances_cost = false;  ///< of packed rows
};

/// Beside --shuffle and --no-shuffle, which are added before.
void add_order_choice(CLI::App& app, order_choice& choice);

/// What both say of the loader: batch size, seed, order, and what becomes of a last batch.
///   sources   how many there are: --mixture has a share for each
///   throws    error{errc::usage} in words of the flags
void set_order(loader_options& options, const order_options& order, const picture_options& pictures,
               const order_choice& choice, std::size_t sources);

/// What a person calls that order: "shuffled, seed 7".
[[nodiscard]] std::string words_of(const order_options& order, const picture_options& pictures,
                                   const order_choice& choice);

/// The samples as the order needs them: --order balanced:cls reads the field cls where it is no column.
///   throws    error{errc::usage}; as read_column()
[[nodiscard]] dataset samples_for_order(const order_choice& choice, const chosen_fields& fields);

}  // namespace leat::tools
