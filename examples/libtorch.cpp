// Batches as at::Tensor, without a copy: a tensor keeps the memory of its batch for as long as it lives. A classifier of one layer learns
// from them.
//
//   build/release/examples/libtorch build/photos 3      (epochs)
#include <leat/loader.hpp>
#include <leat/torch.hpp>

#include <ATen/ATen.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

int main(int argc, char** argv) try {
  constexpr std::int64_t side = 32, classes_max = 100;
  const auto epochs = static_cast<std::uint32_t>(argc > 2 ? std::atoi(argv[2]) : 3);
  leat::loader train{leat::open(argc > 1 ? argv[1] : "build/photos"),
                     {.batch_size = 50, .seed = 7, .epochs = epochs},
                     leat::image{"jpg"}.resize(side).center_crop(side).normalize(leat::imagenet),
                     leat::label{"cls"}};
  at::Tensor weights = at::zeros({3 * side * side, classes_max});
  double first = 0;
  double last = 0;
  bool is_copied = false;
  while (!train.finished()) {
    double sum = 0;
    std::int64_t batches = 0;
    for (const leat::batch& batch : train.blocking()) {
      const at::Tensor pixels = leat::to_torch(batch["jpg"]);   // f32 [rows, 3, 32, 32]
      const at::Tensor classes = leat::to_torch(batch["cls"]);  // i64 [rows]
      is_copied = is_copied || pixels.data_ptr() != batch["jpg"].data;
      const at::Tensor inputs = pixels.flatten(1);
      const at::Tensor shares = inputs.matmul(weights).softmax(1);
      const at::Tensor wanted = at::one_hot(classes, classes_max);
      sum -= (shares * wanted).sum(1).log().mean().item<double>();
      ++batches;
      weights -= 1e-3 * inputs.t().matmul(shares - wanted) / static_cast<double>(pixels.size(0));
    }
    if (batches == 0) break;
    last = sum / static_cast<double>(batches);
    if (first == 0) first = last;
    std::cout << "loss " << last << '\n';
  }
  std::cout << (is_copied ? "a batch was copied" : "no batch was copied")
            << (last < first ? ", the loss fell\n" : "\n");
} catch (const std::exception& problem) {
  std::cerr << problem.what() << '\n';
  return 1;
}
