// A training run that ends now and then, and goes on with the next batch as if it had not: loader_state.
//
//   build/release/examples/resume build/photos      (made by: build/release/leat make-photos build/photos)
#include <leat/loader.hpp>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

namespace {

/// What a checkpoint of a model would be: all that it has learnt so far.
struct model {
  std::uint64_t steps = 0;
  std::uint64_t classes_seen = 0;

  void step(const leat::batch& batch) {
    ++steps;
    for (const std::int64_t number : batch["cls"].as<std::int64_t>())
      classes_seen = classes_seen * 31 + static_cast<std::uint64_t>(number);
  }
};

/// Trains until the run has ended, or for so many steps, as a job of a cluster that is allowed an hour.
///   returns   whether the run has ended
bool train(const std::string& photos, const std::filesystem::path& state, std::uint64_t steps_max, model& learns) {
  leat::loader_options options{.batch_size = 64, .seed = 7, .epochs = 3};
  if (std::filesystem::exists(state)) options.resume = leat::loader_state::load(state);
  leat::loader train{leat::open(photos), options, leat::image{"jpg"}.random_resized_crop(64), leat::label{"cls"}};
  std::uint64_t steps = 0;
  while (!train.finished()) {
    while (std::optional<leat::batch> batch = train.next_blocking()) {
      learns.step(*batch);
      // Beside the model's own checkpoint, and as rarely: the state of the batch that it has just learnt from.
      train.state_after(*batch).save(state);
      if (++steps == steps_max) return false;
    }
    train.state().save(state);  // The epoch's end is behind it, too.
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string photos = argc > 1 ? argv[1] : "build/photos";
  const std::filesystem::path state = std::filesystem::temp_directory_path() / "leat-resume-example.state";
  std::filesystem::remove(state);
  model whole;
  train(photos, state, 0, whole);

  std::filesystem::remove(state);
  model parts;
  int jobs = 1;
  while (!train(photos, state, 3, parts)) ++jobs;
  std::filesystem::remove(state);

  const bool same = parts.steps == whole.steps && parts.classes_seen == whole.classes_seen;
  std::cout << whole.steps << " steps in one job, " << parts.steps << " in " << jobs << ": "
            << (same ? "the same samples in the same order\n" : "they differ\n");
  return same ? 0 : 1;
} catch (const std::exception& problem) {
  std::cerr << problem.what() << '\n';
  return 1;
}
