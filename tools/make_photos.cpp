#include "tools/make_photos.hpp"

#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "tools/jpeg_encode.hpp"
#include "tools/paint.hpp"

#include <leat/error.hpp>

#include <sys/file.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* manifest_name = ".leat-photos";
constexpr std::uint32_t side_max = 8192;
constexpr std::uint32_t classes_max = 1000;

// --- Errors and files ----------------------------------------------------------------------------------------------

// Of the hidden directory in which a set is made; its own name is nothing that anybody gave.
constexpr std::string_view unfinished_mark = ".unfinished-";

fs::path without_mark(const fs::path& path) {
  fs::path plain;
  for (const fs::path& part : path) {
    const std::string name = part.string();
    const std::size_t mark = name.find(unfinished_mark);
    plain /= name.starts_with('.') && mark != std::string::npos ? fs::path(name.substr(1, mark - 1)) : part;
  }
  return plain;
}

[[noreturn]] void fail(const std::string& what, const fs::path& where, int code) {
  const std::string line = what + " " + without_mark(where).string() + ": " + std::generic_category().message(code);
  switch (code) {
    case ENOSPC:
    case EDQUOT:
      throw error(errc::limit, line + "; the default set needs 220 MB: free some, or choose another directory");
    case EACCES:
    case EPERM:
    case EROFS:
      throw error(errc::permission, line + "; choose a directory you may write to");
    default:
      throw error(errc::io, line + "; see dmesg for what the disk says");
  }
}

int open_or_fail(const fs::path& path, int flags, const std::string& what) {
  const int number = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  if (number < 0) fail(what, path, errno);
  return number;
}

void write_file(const fs::path& path, std::span<const std::uint8_t> bytes) {
  const descriptor file(open_or_fail(path, O_WRONLY | O_CREAT | O_EXCL, "cannot create"));
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot write", path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void make_directory(const fs::path& path) {
  if (::mkdir(path.c_str(), 0777) != 0) fail("cannot make the directory", path, errno);
}

// --- What a complete set says of itself ----------------------------------------------------------------------------

// The first line numbers the painter: another one makes other pictures from the same options.
std::string manifest_of(const make_photos_options& options) {
  return "leat photos 1\ncount " + std::to_string(options.count) + "\nclasses " + std::to_string(options.classes) +
         "\nsize " + std::to_string(options.width) + "x" + std::to_string(options.height) + "\nseed " +
         std::to_string(options.seed) + "\nquality " + std::to_string(options.quality) + "\n";
}

struct pictures_found {
  std::uint32_t count = 0;
  std::uint64_t bytes = 0;
};

pictures_found count_pictures(const fs::path& directory) {
  pictures_found found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.path().extension() != ".jpg" || !entry.is_regular_file()) continue;
    ++found.count;
    found.bytes += entry.file_size();
  }
  return found;
}

// The set that lies in `directory`; nothing where there is none and one may be put there. Throws where something else is.
std::optional<photo_set_summary> find_set(const fs::path& directory, const make_photos_options& options) try {
  const fs::file_status status = fs::status(directory);
  if (!fs::exists(status)) return std::nullopt;
  if (!fs::is_directory(status))
    throw error(errc::usage, directory.string() + " is no directory; choose another name for the photo set");
  std::ifstream file(directory / manifest_name, std::ios::binary);
  if (!file) {
    if (fs::is_empty(directory)) return std::nullopt;
    throw error(errc::usage,
                directory.string() + " holds something, and no photo set of ours; choose an empty or a new directory");
  }
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const pictures_found found = count_pictures(directory);
  const std::string expected = manifest_of(options);
  if (!std::string_view(text).starts_with(expected))
    throw error(errc::usage, directory.string() + " holds a photo set that was made with other options (see " +
                                 manifest_name + " there); choose another directory, or remove it");
  if (text != expected + "bytes " + std::to_string(found.bytes) + "\n" || found.count != options.count)
    throw error(errc::corrupt, directory.string() + " holds " + std::to_string(found.count) + " of " +
                                   std::to_string(options.count) +
                                   " pictures, or damaged ones; remove it, and it is made again");
  return photo_set_summary{.made = false, .count = found.count, .bytes = found.bytes};
} catch (const fs::filesystem_error& e) {
  fail("cannot look into", e.path1().empty() ? directory : e.path1(), e.code().value());
}

// Removes all that lies in a directory of pictures, and it; false where something stays. Whoever stops us waits for a part
// of it only, a thousand files and more: the next run finds the rest, which is abandoned then.
[[nodiscard]] bool remove_pictures(const fs::path& directory, const std::stop_token& stop,
                                   std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now()) {
  constexpr std::chrono::milliseconds patience(60);
  std::error_code failed;
  for (fs::directory_iterator entry(directory, failed), end; !failed && entry != end; entry.increment(failed)) {
    std::error_code ignored;
    if (entry->is_directory(ignored) && !entry->is_symlink(ignored)) {
      static_cast<void>(remove_pictures(entry->path(), stop, began));
    } else {
      fs::remove(entry->path(), ignored);
    }
    if (stop.stop_requested() && std::chrono::steady_clock::now() - began > patience) return false;
  }
  fs::remove(directory, failed);
  return !failed;
}

// --- The directory in which a set is made --------------------------------------------------------------------------

// Hidden, beside the place where the set will stand, and locked while its maker lives: what is not locked was left behind
// by one that died, and goes. Removed unless it was moved into place.
class workshop {
 public:
  workshop(const fs::path& target, std::stop_token stop)
      : prefix_("." + target.filename().string() + std::string(unfinished_mark)),
        parent_(target.parent_path()),
        stop_(std::move(stop)) {
    remove_abandoned();
    for (std::uint32_t attempt = 0;; ++attempt) {
      path_ = parent_ / (prefix_ + std::to_string(::getpid()) + "-" + std::to_string(attempt));
      if (::mkdir(path_.c_str(), 0777) != 0) {
        if (errno == EEXIST && attempt < 1000) continue;
        fail("cannot make the directory", path_, errno);
      }
      // Between mkdir() and flock() another one may take it for abandoned: then it is gone, and the next name is tried.
      const int number = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      if (number < 0 && errno == ENOENT) continue;
      if (number < 0) fail("cannot open", path_, errno);
      lock_.emplace(number);
      ::flock(number, LOCK_EX);  // Where locks are unknown, nothing is ever found abandoned.
      if (is_at(path_, number)) return;
    }
  }
  workshop(const workshop&) = delete;
  workshop& operator=(const workshop&) = delete;
  ~workshop() {
    static_cast<void>(clear());  // What cannot be removed now is removed by the next run.
  }

  /// Gives up the set; false where something of it is still there.
  [[nodiscard]] bool clear() { return std::exchange(moved_, true) || remove_pictures(path_, stop_); }

  [[nodiscard]] const fs::path& path() const noexcept { return path_; }

  /// Makes the set appear at its place; false where something has appeared there meanwhile.
  [[nodiscard]] bool move_to(const fs::path& target) {
    // One call for the whole file system, instead of one fsync for each of thousands of files.
    if (::syncfs(lock_->get()) != 0) fail("cannot write to the disk", path_, errno);
    if (::rename(path_.c_str(), target.c_str()) != 0) {
      if (errno == ENOTEMPTY || errno == EEXIST) return false;
      fail("cannot move the photo set to", target, errno);
    }
    moved_ = true;
    const descriptor parent(open_or_fail(parent_, O_RDONLY | O_DIRECTORY, "cannot open"));
    ::fsync(parent.get());  // Some file systems know no fsync of directories; the set is there all the same.
    return true;
  }

 private:
  [[nodiscard]] static bool is_at(const fs::path& path, int opened) {
    struct stat ours{};
    struct stat there{};
    return ::fstat(opened, &ours) == 0 && ::stat(path.c_str(), &there) == 0 && ours.st_ino == there.st_ino;
  }

  void remove_abandoned() const {
    std::error_code failed;
    for (fs::directory_iterator entry(parent_, failed), end; !failed && entry != end; entry.increment(failed)) {
      if (!entry->path().filename().string().starts_with(prefix_)) continue;
      const int number = ::open(entry->path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (number < 0) continue;
      // Its maker may have moved it into place since it was opened, and another one have made a directory of the same name.
      if (::flock(number, LOCK_EX | LOCK_NB) == 0 && is_at(entry->path(), number)) {
        static_cast<void>(remove_pictures(entry->path(), stop_));
      }
      ::close(number);
    }
  }

  std::string prefix_;
  fs::path parent_;
  fs::path path_;
  std::stop_token stop_;
  std::optional<descriptor> lock_;
  bool moved_ = false;  // Or given up.
};

// --- Making --------------------------------------------------------------------------------------------------------

// As photographs are stored: of 1,000 of ImageNet 76 % are 4:4:4, 20 % 4:2:0, 1 % 4:2:2 and 2 % grey.
jpeg_chroma chroma_of(std::uint64_t percent) {
  if (percent < 76) return jpeg_chroma::yuv444;
  if (percent < 97) return jpeg_chroma::yuv420;
  return percent < 98 ? jpeg_chroma::yuv422 : jpeg_chroma::grey;
}

// "00042": at least five digits, so that names sort as numbers do.
std::string padded(std::uint32_t number) {
  std::string digits = std::to_string(number);
  if (digits.size() < 5) digits.insert(0, 5 - digits.size(), '0');
  return digits;
}

// The pictures of a set, made by some threads and waited for by the caller's.
class press {
 public:
  press(const fs::path& directory, const make_photos_options& options) : directory_(directory), options_(options) {}

  // The bytes of all pictures.
  std::uint64_t run() {
    const std::uint32_t cores = std::max(1U, std::thread::hardware_concurrency());
    const std::uint32_t count = std::min(options_.threads > 0 ? options_.threads : cores, options_.count);
    std::vector<std::jthread> threads;
    threads.reserve(count);
    try {
      for (std::uint32_t i = 0; i < count; ++i) {
        started(1);
        try {
          threads.emplace_back([this] { work(); });
        } catch (...) {
          started(-1);
          throw;
        }
      }
      watch();
    } catch (...) {
      keep_failure(std::current_exception());
    }
    threads.clear();
    const mutex_lock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    if (stopping()) throw error(errc::cancelled, "the photo set was not finished");
    return bytes_.load();
  }

 private:
  [[nodiscard]] bool stopping() const noexcept { return options_.stop.stop_requested() || given_up_.load(); }

  void work() noexcept try {
    canvas picture;
    painter::scratch scratch;
    std::vector<std::uint8_t> file;
    for (std::uint32_t i = next_.fetch_add(1); i < options_.count && !stopping(); i = next_.fetch_add(1)) {
      const std::uint32_t class_index = i % options_.classes;
      const std::uint32_t index = i / options_.classes;
      random_draws draws(options_.seed, class_index, index, "photo file");
      const jpeg_chroma chroma = chroma_of(draws.below(100));
      const bool upright = draws.below(4) == 0;
      picture.width = upright ? options_.height : options_.width;
      picture.height = upright ? options_.width : options_.height;
      painter_.paint(options_.seed, class_index, index, picture, scratch, options_.stop);
      encode_jpeg(picture.rgb, picture.width, picture.height,
                  {.quality = options_.quality, .chroma = chroma, .stop = options_.stop}, file);
      const std::string name = paint_class_name(class_index);
      write_file(directory_ / name / (name + "-" + padded(index) + ".jpg"), file);
      bytes_.fetch_add(file.size());
      done_.fetch_add(1);
    }
    started(-1);
  } catch (...) {
    keep_failure(std::current_exception());
    started(-1);
  }

  void started(int change) {
    const mutex_lock lock(mutex_);
    running_ += change;
    changed_.notify_all();
  }

  void keep_failure(std::exception_ptr failure) {
    const mutex_lock lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    given_up_.store(true);
  }

  // Until all threads have ended.
  void watch() {
    using namespace std::chrono_literals;
    for (bool running = true; running;) {
      {
        const mutex_lock lock(mutex_);
        const auto deadline = std::chrono::steady_clock::now() + 100ms;
        while (running_ > 0 && changed_.wait_until(mutex_, deadline)) {
        }
        running = running_ > 0;
      }
      if (options_.on_progress) options_.on_progress(done_.load(), options_.count);
    }
  }

  const fs::path& directory_;
  const make_photos_options& options_;
  const painter& painter_ = shared_painter(options_.stop);
  std::atomic<std::uint32_t> next_{0};
  std::atomic<std::uint32_t> done_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<bool> given_up_{false};

  mutex mutex_;
  condition_variable changed_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  std::exception_ptr failure_ ABSL_GUARDED_BY(mutex_);
};

void check(const make_photos_options& options) {
  const auto refuse = [](const std::string& what) { throw error(errc::usage, "make-photos: " + what); };
  if (options.classes == 0 || options.classes > classes_max)
    refuse(std::to_string(options.classes) + " classes; there may be 1.." + std::to_string(classes_max));
  if (options.count < options.classes)
    refuse(std::to_string(options.count) + " pictures in " + std::to_string(options.classes) +
           " classes; each class needs one at least");
  if (options.width < 8 || options.height < 8 || options.width > side_max || options.height > side_max)
    refuse("pictures of " + std::to_string(options.width) + " x " + std::to_string(options.height) +
           " pixels; each side may be 8.." + std::to_string(side_max));
  if (options.quality < 1 || options.quality > 100)
    refuse("quality " + std::to_string(options.quality) + "; it may be 1..100");
}

// An absolute path whose last part is a name, also for "photos/" and "photos/.".
fs::path place_of(const fs::path& directory) {
  if (directory.empty()) throw error(errc::usage, "make-photos: the name of the directory is empty");
  fs::path place = fs::absolute(directory).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();
  if (!place.has_filename())
    throw error(errc::usage, "make-photos: " + place.string() + " cannot be a photo set; choose a directory below it");
  return place;
}

}  // namespace

photo_set_summary make_photos(const fs::path& directory, const make_photos_options& options) {
  check(options);
  const fs::path place = place_of(directory);
  if (const auto found = find_set(place, options)) return *found;

  const auto nothing_left = [&] { return error(errc::cancelled, "nothing was left in " + directory.string()); };
  // Whoever was stopped before it began has nothing to remove, for which there may be no time.
  if (options.stop.stop_requested()) throw nothing_left();
  std::error_code failed;
  fs::create_directories(place.parent_path(), failed);
  if (failed) fail("cannot make the directory", place.parent_path(), failed.value());
  workshop shop(place, options.stop);
  for (std::uint32_t i = 0; i < options.classes; ++i) make_directory(shop.path() / paint_class_name(i));
  std::uint64_t bytes = 0;
  try {
    bytes = press(shop.path(), options).run();
  } catch (const error& failure) {
    if (failure.code() != errc::cancelled) throw;
    if (shop.clear()) throw nothing_left();
    throw error(errc::cancelled, "some of it is left in " + shop.path().string() + ", which the next run removes");
  }
  const std::string manifest = manifest_of(options) + "bytes " + std::to_string(bytes) + "\n";
  write_file(shop.path() / manifest_name, {reinterpret_cast<const std::uint8_t*>(manifest.data()), manifest.size()});
  if (!shop.move_to(place)) {
    if (const auto found = find_set(place, options)) return *found;  // Another run was as fast, and made the same.
    throw error(errc::io, "cannot move the photo set to " + place.string() + ": it changes meanwhile; try again");
  }
  return {.made = true, .count = options.count, .bytes = bytes};
}

}  // namespace leat::tools
