// What an installed leat owes its users: headers that compile without leat's own flags, symbols that link, and a loader
// that runs.

#include <leat/error.hpp>
#include <leat/loader.hpp>
#include <leat/tensor.hpp>
#include <leat/version.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace {

std::vector<std::byte> make(std::uint64_t sample) { return {std::byte(sample), std::byte(2 * sample)}; }

// Ten samples of two bytes in batches of four; the sum over all of them.
unsigned sum_of_an_epoch() {
  const leat::dataset numbers = leat::from_function(10, make, {.field = "pair", .bytes_max = 2});
  const leat::loader_options options{.batch_size = 4, .epochs = 1, .host_bytes_max = std::size_t{16} << 20};
  leat::loader train(numbers, options, leat::bytes("pair"));
  unsigned sum = 0;
  for (const leat::batch& batch : train.blocking()) {
    for (std::uint32_t row = 0; row < batch.valid_rows(); ++row) {
      for (const std::byte value : batch.bytes("pair", row)) sum += std::to_integer<unsigned>(value);
    }
  }
  return sum;
}

}  // namespace

int main() {
  try {
    const leat::dimensions shape{2, 3, 4};
    const leat::error missing(leat::errc::not_found, "no such file; check the path");
    const bool ok = leat::dense_strides(shape) == leat::dimensions{12, 4, 1} &&
                    missing.code() == leat::errc::not_found && sum_of_an_epoch() == 3 * 45;
    std::printf("leat %d.%d.%d: %s\n", LEAT_VERSION_MAJOR, LEAT_VERSION_MINOR, LEAT_VERSION_PATCH,
                ok ? "ok" : "broken");
    return ok ? 0 : 1;
  } catch (const std::exception& failure) {
    std::printf("leat: %s\n", failure.what());
    return 1;
  }
}
