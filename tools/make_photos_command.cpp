// leat make-photos: the default photo set, for who has none at hand.
#include "base/text.hpp"
#include "tools/arguments.hpp"
#include "tools/human.hpp"
#include "tools/make_photos.hpp"
#include "tools/output.hpp"
#include "tools/status_line.hpp"
#include "tools/subcommand.hpp"

#include <leat/error.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace leat::tools {
namespace {

struct photo_arguments {
  std::string directory;
  make_photos_options how;
};

std::string progress(const terminal& screen, std::size_t columns, std::uint32_t done, std::uint32_t count) {
  const std::string end = str_cat("  ", count_text(done), " of ", count_text(count), " pictures");
  return bar_line(screen, columns, static_cast<double>(done) / std::max(count, 1U), end);
}

int make(photo_arguments& arguments, interruption& stop) {
  const auto began = std::chrono::steady_clock::now();
  arguments.how.stop = stop.token();
  photo_set_summary made;
  try {
    std::atomic<std::uint32_t> done = 0;
    arguments.how.on_progress = [&done](std::uint32_t so_far, std::uint32_t) { done.store(so_far); };
    const status_line shown([&](const terminal& screen, std::size_t columns) {
      return progress(screen, columns, done.load(), arguments.how.count);
    });
    made = make_photos(arguments.directory, arguments.how);
  } catch (const error& failure) {
    if (failure.code() != errc::cancelled || !stop.requested()) {
      // make_photos() tells other callers who is speaking; here the line begins with it anyway.
      constexpr std::string_view speaker = "make-photos: ";
      const std::string_view what = failure.what();
      throw error(failure.code(), std::string(what.substr(what.starts_with(speaker) ? speaker.size() : 0)));
    }
    complain("make-photos", str_cat("stopped by ", stop.name(), "; ", failure.what()));
    return stop.exit_code();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  print(str_cat(arguments.directory, ": ", counted(made.count, "picture", "pictures"), " in ",
                counted(arguments.how.classes, "class", "classes"), ", ", bytes_text(made.bytes),
                made.made ? str_cat(", made in ", seconds_text(took.count())) : ", there already", "\n"));
  return exit_done;
}

}  // namespace

void add_make_photos(CLI::App& leat, chosen_command& chosen) {
  auto arguments = std::make_shared<photo_arguments>();  // Lives as long as the parser's callbacks do.
  CLI::App& app = *leat.add_subcommand("make-photos", "make pictures to try things with, as costly as photographs");
  app.add_option("DIR", arguments->directory, "where to; made if missing, and left alone if the set is there already")
      ->required()
      ->type_name("");
  add_number(app, "--count", arguments->how.count, 1, "pictures (2000)");
  add_number(app, "--classes", arguments->how.classes, 1, "class folders (10)");
  add_number(app, "--width", arguments->how.width, 1, "pixels (500)");
  add_number(app, "--height", arguments->how.height, 1, "pixels (400)");
  add_number(app, "--seed", arguments->how.seed, 0, "other pictures of the same kind (0)");
  add_number(app, "--threads", arguments->how.threads, 1, "that paint; does not change a byte (one per core)", 1024);
  app.footer("  leat make-photos photos\n  leat make-photos tiny --count 100 --width 64 --height 48");
  app.callback([arguments, &chosen] { chosen = [arguments](interruption& stop) { return make(*arguments, stop); }; });
}

}  // namespace leat::tools
