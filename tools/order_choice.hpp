// --order, --mixture and --last: which order a command takes the samples in.
#pragma once

#include <leat/dataset.hpp>
#include <leat/order.hpp>

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace leat::tools {

struct order_choice {
  std::string order;    ///< as given; empty: none
  std::string mixture;  ///< likewise
  std::optional<last_batch> last;
};

/// With --shuffle, --no-shuffle and --drop-last, which are added before.
void add_order_choice(CLI::App& app, order_choice& choice);

/// The order that is meant; nullopt where --shuffle and --no-shuffle say it.
///   sources   how many there are: --mixture has a share for each
///   throws    error{errc::usage} in words of the flags
[[nodiscard]] std::optional<order> order_of(const order_choice& choice, std::size_t sources);

/// The samples as the order needs them: --order balanced:cls reads the field cls where it is no column.
///   opened    what the sources are
///   samples   those of them that are loaded
///   throws    error{errc::usage}; as read_column()
[[nodiscard]] dataset samples_for_order(const order_choice& choice, const dataset& opened, const dataset& samples);

}  // namespace leat::tools
