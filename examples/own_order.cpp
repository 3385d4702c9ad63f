// A sampler and a collate function of one's own: a curriculum, whose first epochs have the short texts only, and rows that
// are packed into one tensor, each behind its length.
#include <leat/loader.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

constexpr std::uint64_t texts = 400;
constexpr std::uint32_t rows_each = 20;

std::uint64_t length_of(std::uint64_t sample) { return 1 + sample / 4; }

/// Epoch e has the first (e + 1) quarters of the dataset, which begins with its shortest texts, in steps of a prime number.
class curriculum final : public leat::sampler {
 public:
  [[nodiscard]] std::uint64_t batches(std::uint32_t epoch) const override { return known(epoch) / rows_each; }
  [[nodiscard]] std::uint32_t rows(std::uint32_t, std::uint64_t) const override { return rows_each; }
  [[nodiscard]] std::uint32_t rows_max() const override { return rows_each; }
  [[nodiscard]] bool repeats() const override { return false; }
  void picks(std::uint32_t epoch, std::uint64_t batch, std::uint32_t row_begin, std::uint32_t row_end,
             std::span<leat::pick> out) const override {
    for (std::uint32_t row = row_begin; row < row_end; ++row) {
      const std::uint64_t sample = (batch * rows_each + row) * 7919 % known(epoch);
      out[row - row_begin] = {.sample = sample, .draw = sample, .epoch = epoch};
    }
  }

 private:
  static std::uint64_t known(std::uint32_t epoch) { return texts / 4 * std::min<std::uint64_t>(epoch + 1, 4); }
};

// u32 lengths of all rows, and behind them their bytes: one tensor of the batch, as collate_fn.
leat::dimensions pack(std::span<const std::span<const std::byte>> rows, const leat::batch_context& /*of*/,
                      std::span<std::byte> into) {
  std::size_t end = rows.size() * sizeof(std::uint32_t);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto length = static_cast<std::uint32_t>(rows[row].size());
    std::memcpy(&into[row * sizeof length], &length, sizeof length);
    std::memcpy(&into[end], rows[row].data(), rows[row].size());
    end += rows[row].size();
  }
  return {static_cast<std::int64_t>(end)};
}

int main() try {
  const auto make = [](std::uint64_t sample) { return std::vector(length_of(sample), std::byte('a')); };
  leat::loader_options options{.epochs = 4, .host_bytes_max = 64 << 20};
  options.order = leat::sampled_by(std::make_shared<curriculum>());
  leat::loader train{
      leat::from_function(texts, make, {.field = "txt", .bytes_max = length_of(texts - 1)}), options,
      leat::collated{"packed", leat::dtype::u8, rows_each * (4 + length_of(texts - 1)), pack}.from("txt")};
  for (std::uint32_t epoch = 0; !train.finished(); ++epoch) {
    std::uint32_t longest = 0, rows = 0;
    for (const leat::batch& batch : train.blocking()) {
      const auto packed = batch["packed"].as<std::byte>();
      for (std::uint32_t row = 0; row < batch.valid_rows(); ++row, ++rows) {
        std::uint32_t length = 0;
        std::memcpy(&length, &packed[row * sizeof length], sizeof length);
        longest = std::max(longest, length);
      }
    }
    if (rows != 0) std::printf("epoch %u: %u texts, the longest of %u bytes\n", epoch, rows, longest);
  }
} catch (const std::exception& problem) {
  std::fprintf(stderr, "own_order: %s\n", problem.what());
  return 1;
}
