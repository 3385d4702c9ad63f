// A run with libtorch that is trained, validated, killed and resumed: a small net on photographs in folders, by class. A
// checkpoint is one file, with the model, the optimiser and the place of the loader: what was learnt and what was read
// cannot be of two moments. A run that was killed and goes on has the losses of one that was not.
//
//     libtorch_train PHOTOS CHECKPOINT [STEP to be killed behind]
#include <leat/loader.hpp>
#include <leat/torch.hpp>

#include <torch/nn.h>
#include <torch/optim.h>
#include <torch/serialize.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace fs = std::filesystem;
using namespace leat::literals;

void save(const fs::path& to, torch::nn::Sequential& net, torch::optim::SGD& learn, const leat::loader_state& place) {
  torch::serialize::OutputArchive all, of_net, of_learn;
  net->save(of_net);
  learn.save(of_learn);
  all.write("net", of_net);
  all.write("learn", of_learn);
  std::vector<std::byte> bytes = place.bytes();
  all.write("place", torch::from_blob(bytes.data(), {static_cast<std::int64_t>(bytes.size())}, torch::kByte));
  all.save_to(to.string() + ".new");
  fs::rename(to.string() + ".new", to);  // the old one or the new one, whole
}

leat::loader_state load(const fs::path& from, torch::nn::Sequential& net, torch::optim::SGD& learn) {
  torch::serialize::InputArchive all, of_net, of_learn;
  all.load_from(from);
  all.read("net", of_net);
  net->load(of_net);
  all.read("learn", of_learn);
  learn.load(of_learn);
  torch::Tensor place;
  all.read("place", place);
  return leat::loader_state::from_bytes({static_cast<const std::byte*>(place.data_ptr()), place.nbytes()},
                                        from.string());
}

int main(int argc, char** argv) try {
  const leat::dataset photos = leat::open(argc > 1 ? argv[1] : "build/photos");
  const fs::path checkpoint = argc > 2 ? argv[2] : "libtorch_train.checkpoint";
  const int killed_behind = argc > 3 ? std::atoi(argv[3]) : 0;
  const auto classes = static_cast<std::int64_t>(photos.classes().size());
  torch::manual_seed(7);
  torch::nn::Sequential net(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 5).stride(2)), torch::nn::ReLU(),
                            torch::nn::Flatten(), torch::nn::Linear(8 * 14 * 14, classes));
  torch::optim::SGD learn(net->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));

  leat::loader_options options{.batch_size = 32, .seed = 7, .epochs = 3, .host_bytes_max = 192_MiB};
  if (fs::exists(checkpoint)) options.resume = load(checkpoint, net, learn);
  const std::vector<leat::dataset> parts = photos.split(7, {0.9});
  leat::loader train{parts[0], options,
                     leat::image{"jpg"}.random_resized_crop(32).random_flip().normalize(leat::imagenet),
                     leat::label{"cls"}};
  leat::loader validation{parts[1],
                          {.batch_size = 32, .shuffle = false, .host_bytes_max = 64_MiB},
                          leat::image{"jpg"}.resize(32).center_crop(32).normalize(leat::imagenet),
                          leat::label{"cls"}};

  for (int step = 0; !train.finished();) {
    for (const leat::batch& batch : train.blocking()) {
      const torch::Tensor loss =
          torch::nn::functional::cross_entropy(net->forward(to_torch(batch["jpg"])), to_torch(batch["cls"]));
      learn.zero_grad();
      loss.backward();
      learn.step();
      std::printf("epoch %u, batch %llu: loss %.9g\n", batch.epoch(), static_cast<unsigned long long>(batch.index()),
                  loss.item<double>());
      if (++step == killed_behind) std::fflush(stdout), std::_Exit(3);
      if (step % 3 == 0) save(checkpoint, net, learn, train.state_after(batch));
    }
    const torch::NoGradGuard no_grad;
    std::int64_t right = 0;
    for (const leat::batch& batch : validation.blocking())
      right += net->forward(to_torch(batch["jpg"])).argmax(1).eq(to_torch(batch["cls"])).sum().item<std::int64_t>();
    std::printf("%lld of %llu others recognised\n", static_cast<long long>(right),
                static_cast<unsigned long long>(validation.samples()));
  }
} catch (const std::exception& problem) {
  std::fprintf(stderr, "libtorch_train: %s\n", problem.what());
  return 1;
}
