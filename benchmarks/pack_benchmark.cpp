// What does it cost to find a batch of packed rows, in a corpus of any size and at any place of an epoch?
//
// The numbers of tokens are made (log-normal, from 20 on), and no text is read: it is the order alone that is measured, a batch of 8
// rows of 2,048 tokens. CPU time of this thread, the median of batches spread over a twentieth of the epoch around each place. Bytes are
// those that the process got for the order, the counts among them.
//
//     pack_benchmark [--documents 100000000] [--rows 8] [--batches 400] [--toy]
//
// Prints JSON: seconds to bind the order and to begin an epoch, bytes a document, microseconds a batch at 0, 50, 90 and 99 % of the epoch.
#include "base/cpu_clock.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "benchmarks/arguments.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/order/order_model.hpp"

#include <leat/error.hpp>
#include <leat/field.hpp>
#include <leat/order.hpp>
#include <leat/own_samples.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::benchmarks {
namespace {

struct settings {
  std::uint64_t documents = 100'000'000;
  std::uint32_t rows = 8;
  std::uint64_t batches = 400;
};

/// A field that has counted its tokens.
class counted_field final : public stages::field_model {
 public:
  explicit counted_field(std::shared_ptr<const stages::row_counts> counts) : counts_(std::move(counts)) {}
  const std::string& name() const noexcept override { return name_; }
  void bind(const datasets::dataset_model&, stages::finished_by,
            std::vector<std::unique_ptr<stages::field_program>>&) const override {}
  std::shared_ptr<const stages::row_counts> counts(const std::shared_ptr<const datasets::dataset_model>&,
                                                   const stages::counting&) const override {
    return counts_;
  }

 private:
  std::string name_ = "text";
  std::shared_ptr<const stages::row_counts> counts_;
};

std::shared_ptr<const stages::row_counts> made_counts(std::uint64_t documents) {
  auto counts = std::make_shared<stages::row_counts>(documents);
  random_draws draws(7, 0, 0, "pack_benchmark");
  for (std::uint32_t& each : *counts) {
    // A sum of twelve is nearly normal.
    double normal = -6;
    for (int i = 0; i < 12; ++i) normal += static_cast<double>(draws.below(1U << 20)) / (1U << 20);
    each = static_cast<std::uint32_t>(std::max(20.0, std::exp(6.2 + normal)));
  }
  return counts;
}

std::uint64_t resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoull(line.substr(6)) * 1024;
  }
  return 0;
}

void run(const settings& how) {
  const dataset samples = from_function(how.documents, [](std::uint64_t) { return std::vector<std::byte>(); },
                                        {.field = "x", .bytes_max = 1});
  const std::uint64_t before = resident_bytes();
  const std::vector<field> fields = {field(std::make_shared<counted_field>(made_counts(how.documents)))};
  const std::uint64_t bind_ns = thread_cpu_ns();
  const std::shared_ptr<const sampler> order =
      packed(2048).model().bind(samples, {.seed = 7, .batch_size = how.rows, .fields = fields});
  const std::uint64_t epoch_ns = thread_cpu_ns();
  const std::uint64_t batches = order->batches(0);
  const std::uint64_t made_ns = thread_cpu_ns();
  std::string places;
  std::uint64_t pieces = 0;
  for (const double share : {0.0, 0.5, 0.9, 0.99}) {
    std::vector<std::uint64_t> took;
    std::vector<pick> picks;
    const auto first = static_cast<std::uint64_t>(share * static_cast<double>(batches));
    const std::uint64_t step = std::max<std::uint64_t>(batches / 100 / how.batches, 1);
    for (std::uint64_t i = 0; i < how.batches; ++i) {
      const std::uint64_t batch = std::min(first + i * step, batches - 1);
      const std::uint64_t begin_ns = thread_cpu_ns();
      picks.resize(order->rows(0, batch));
      order->picks(0, batch, 0, static_cast<std::uint32_t>(picks.size()), picks);
      took.push_back(thread_cpu_ns() - begin_ns);
      pieces += picks.size();
    }
    std::nth_element(took.begin(), took.begin() + static_cast<std::ptrdiff_t>(took.size() / 2), took.end());
    str_append(places, places.empty() ? "" : ", ", "\"", static_cast<int>(100 * share + 0.5),
               "\": ", with_decimals(static_cast<double>(took[took.size() / 2]) / 1e3, 1));
  }
  const double bytes = static_cast<double>(resident_bytes() - std::min(before, resident_bytes()));
  std::printf(
      "{\"documents\": %llu, \"batches\": %llu, \"bind_s\": %.3f, \"epoch_s\": %.3f, \"bytes_a_document\": %.2f, "
      "\"pieces_a_batch\": %.1f, \"us_a_batch\": {%s}}\n",
      static_cast<unsigned long long>(how.documents), static_cast<unsigned long long>(batches),
      static_cast<double>(epoch_ns - bind_ns) / 1e9, static_cast<double>(made_ns - epoch_ns) / 1e9,
      bytes / static_cast<double>(how.documents), static_cast<double>(pieces) / static_cast<double>(4 * how.batches),
      places.c_str());
}

}  // namespace
}  // namespace leat::benchmarks

int main(int count, char** words) {
  namespace benchmarks = leat::benchmarks;
  return benchmarks::run_benchmark("pack_benchmark", [&] {
    benchmarks::settings how;
    benchmarks::read_options(
        count, words,
        {{"--documents", how.documents}, {"--rows", how.rows}, {"--batches", how.batches}, {"--toy", [&] {
                                                                                              how.documents = 5'000;
                                                                                              how.batches = 5;
                                                                                            }}});
    benchmarks::run(how);
  });
}
