#pragma once

// Small seeded photographs for tests: a folder of them, or one in memory.

#include "tests/support/temporary_directory.hpp"
#include "tools/jpeg_encode.hpp"
#include "tools/make_photos.hpp"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace leat::testing {

/// A photo set in a temporary directory, about 3 KiB and 0.2 ms per picture unless told otherwise. What is in it:
/// tools/make_photos.hpp; most pictures are 4:4:4, some 4:2:0, few 4:2:2 or grey.
class photo_folder {
 public:
  explicit photo_folder(const tools::make_photos_options& options = small());

  /// 12 pictures of 64 x 48 pixels in 3 classes.
  [[nodiscard]] static tools::make_photos_options small();

  [[nodiscard]] std::filesystem::path path() const { return directory_.path() / "photos"; }

  /// All pictures, as ImageFolder orders them: by class, then by name.
  [[nodiscard]] std::vector<std::filesystem::path> files() const;

 private:
  temporary_directory directory_;
};

/// The pixels of one photograph: RGB, rows from the top.
[[nodiscard]] std::vector<std::uint8_t> photo_pixels(std::uint64_t seed, std::uint32_t width, std::uint32_t height);

/// The same as a JPEG file.
[[nodiscard]] std::vector<std::uint8_t> photo_jpeg(std::uint64_t seed, std::uint32_t width, std::uint32_t height,
                                                   const tools::jpeg_encode_options& options = {});

/// All bytes of a file. Throws std::runtime_error.
[[nodiscard]] std::vector<std::uint8_t> bytes_of_file(const std::filesystem::path& path);

}  // namespace leat::testing
