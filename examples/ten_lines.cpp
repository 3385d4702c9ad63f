// The README's program: one epoch of photographs, batch by batch.
#include <leat/loader.hpp>

#include <iostream>

int main(int argc, char** argv) {
  leat::loader train{leat::open(argc > 1 ? argv[1] : "build/photos"),
                     {.batch_size = 64, .seed = 7, .epochs = 1},
                     leat::image{"jpg"}.random_resized_crop(224).random_flip().normalize(leat::imagenet),
                     leat::label{"cls"}};
  for (const leat::batch& batch : train.blocking()) {
    const leat::tensor pixels = batch["jpg"];   // f32, [rows, 3, 224, 224]
    const leat::tensor classes = batch["cls"];  // i64, [rows]
    std::cout << "batch " << batch.index() << ": " << pixels.shape[0] << " pictures, the first of class "
              << classes.as<std::int64_t>()[0] << '\n';
  }
}
