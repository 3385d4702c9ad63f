#include "tools/jpeg_encode.hpp"

#include <leat/error.hpp>

#include <jpeglib.h>

#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <string>

namespace leat::tools {
namespace {

// libjpeg reports an error by calling error_exit, which must not return. It leaves by longjmp, over libjpeg's frames and
// that of compress() below, which hold nothing that has a destructor; what it says becomes an exception afterwards.
struct error_manager {
  jpeg_error_mgr base;
  std::jmp_buf escape;
  char* message;  // JMSG_LENGTH_MAX bytes
};

// Memory of a fixed size; the caller gave enough for any picture.
struct memory_destination {
  jpeg_destination_mgr base;
  unsigned char* memory;
  std::size_t size;
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* const manager = reinterpret_cast<error_manager*>(info->err);
  manager->base.format_message(info, manager->message);
  std::longjmp(manager->escape, 1);
}

void keep_silent(j_common_ptr, int) {}

void start_memory(j_compress_ptr info) {
  auto* const to = reinterpret_cast<memory_destination*>(info->dest);
  to->base.next_output_byte = to->memory;
  to->base.free_in_buffer = to->size;
}

boolean memory_is_full(j_compress_ptr info) {
  auto* const manager = reinterpret_cast<error_manager*>(info->err);
  std::snprintf(manager->message, JMSG_LENGTH_MAX, "the output outgrew the memory set aside for it");
  std::longjmp(manager->escape, 1);
}

void end_memory(j_compress_ptr) {}

// The file's size, or 0 with a message. Plain C inside: see error_manager.
std::size_t compress(const unsigned char* rgb, std::uint32_t width, std::uint32_t height,
                     const jpeg_encode_options& options, unsigned char* memory, std::size_t memory_size,
                     char* message) noexcept {
  jpeg_compress_struct info{};
  error_manager manager{};
  memory_destination destination{};
  info.err = jpeg_std_error(&manager.base);
  manager.base.error_exit = leave;
  manager.base.emit_message = keep_silent;
  manager.message = message;
  if (setjmp(manager.escape) != 0) {
    jpeg_destroy_compress(&info);
    return 0;
  }
  jpeg_create_compress(&info);
  destination.base.init_destination = start_memory;
  destination.base.empty_output_buffer = memory_is_full;
  destination.base.term_destination = end_memory;
  destination.memory = memory;
  destination.size = memory_size;
  info.dest = &destination.base;
  info.image_width = width;
  info.image_height = height;
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  info.dct_method = JDCT_ISLOW;
  jpeg_set_quality(&info, options.quality, TRUE);
  if (options.chroma == jpeg_chroma::grey) {
    jpeg_set_colorspace(&info, JCS_GRAYSCALE);
  } else {
    info.comp_info[0].h_samp_factor = options.chroma == jpeg_chroma::yuv444 ? 1 : 2;
    info.comp_info[0].v_samp_factor = options.chroma == jpeg_chroma::yuv420 ? 2 : 1;
  }
  if (options.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    if (options.stop.stop_requested()) {
      jpeg_destroy_compress(&info);
      return 0;
    }
    JSAMPROW row = const_cast<JSAMPROW>(rgb + std::size_t{info.next_scanline} * width * 3);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  const std::size_t written = destination.size - destination.base.free_in_buffer;
  jpeg_destroy_compress(&info);
  return written;
}

}  // namespace

void encode_jpeg(std::span<const std::uint8_t> rgb, std::uint32_t width, std::uint32_t height,
                 const jpeg_encode_options& options, std::vector<std::uint8_t>& out) {
  constexpr std::uint32_t side_max = JPEG_MAX_DIMENSION;
  const std::string size = std::to_string(width) + " x " + std::to_string(height);
  if (width == 0 || height == 0 || width > side_max || height > side_max)
    throw error(errc::usage, "a JPEG of " + size + " pixels cannot be; each side is 1.." + std::to_string(side_max));
  if (options.quality < 1 || options.quality > 100)
    throw error(errc::usage, "JPEG quality " + std::to_string(options.quality) + "; it is 1..100");
  if (rgb.size() != std::size_t{width} * height * 3)
    throw error(errc::usage, std::to_string(rgb.size()) + " bytes for a picture of " + size + " pixels; " +
                                 std::to_string(std::size_t{width} * height * 3) + " are needed");

  // The worst that can be, as tjBufSize() has it: six bytes per pixel of whole 16 x 16 blocks, and the headers.
  const auto whole = [](std::uint32_t side) { return (std::size_t{side} + 15) / 16 * 16; };
  out.resize(whole(width) * whole(height) * 6 + 4096);
  std::array<char, JMSG_LENGTH_MAX> message{};
  const std::size_t bytes = compress(rgb.data(), width, height, options, out.data(), out.size(), message.data());
  if (bytes == 0 && options.stop.stop_requested()) throw error(errc::cancelled, "stopped while writing a picture");
  if (bytes == 0) throw error(errc::limit, "libjpeg cannot write a picture of " + size + " pixels: " + message.data());
  out.resize(bytes);
}

}  // namespace leat::tools
