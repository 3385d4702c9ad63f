// `leat make-photos DIR`: the default photo set, for who has none at hand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>

namespace leat::tools {

struct make_photos_options {
  std::uint32_t count = 2000;
  std::uint32_t classes = 10;
  /// Pixels; one picture in four stands upright, with the two exchanged.
  std::uint32_t width = 500;
  std::uint32_t height = 400;
  std::uint64_t seed = 0;
  /// As libjpeg counts, 1..100. 96 is what most photographs of ImageNet have.
  int quality = 96;
  /// 0 is one per core this process may run on. It does not change a byte.
  std::uint32_t threads = 0;
  /// Called on the calling thread about ten times a second, and once at the end.
  std::function<void(std::uint32_t done, std::uint32_t count)> on_progress;
  /// When a stop is requested, all threads end within a row of pixels, what was begun is removed, and make_photos throws
  /// error{errc::cancelled}. Removing stops after 60 ms: then the error names the directory that the next run removes.
  std::stop_token stop;
};

struct photo_set_summary {
  bool made = false;  ///< false: the set was there already
  std::uint32_t count = 0;
  std::uint64_t bytes = 0;  ///< of all pictures
};

/// Makes a set of pictures in class folders, as ImageFolder reads them: directory/<class>/<class>-<number>.jpg, and
/// beside the classes a hidden file that says with which options it was made. The same options give the same bytes
/// wherever the same libjpeg-turbo runs. By the defaults about 100 KiB each and 200 MB in all.
///
/// Atomic: the pictures are made in a hidden directory beside `directory` and moved there when all are on the disk. A
/// complete set made with the same options is left alone. What an interrupted run left behind is removed by the next.
///   directory   made where it is missing, its parents too; or empty
///   errors      error: usage (options that cannot be; a directory that holds anything else), io, permission, limit
///               (disk full), corrupt (a set from which files are missing), cancelled
photo_set_summary make_photos(const std::filesystem::path& directory, const make_photos_options& options);

}  // namespace leat::tools
