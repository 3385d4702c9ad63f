// Tensors as .npy files, to look at from Python.
#pragma once

#include <leat/tensor.hpp>

#include <cstddef>
#include <stop_token>
#include <string>

namespace leat::tools {

/// The header of a dense tensor, which the data follows on a multiple of `multiple`. bf16, which NumPy does not know, is u2: its bits, so that
/// (a.astype("u4") << 16).view("f4") are the numbers.
///   source   numpy.lib.format, version 1.0
[[nodiscard]] std::string npy_header(dtype type, const dimensions& shape, std::size_t multiple = 64);

/// A dense host tensor as a file. It is written as .NAME.partial and gets its name when it is whole; `stop` is looked at
/// after each MiB, and nothing stays behind then.
///   throws   error as output_file; error{errc::cancelled} on stop
void write_npy(const std::string& path, const tensor& values, const std::stop_token& stop = {});

}  // namespace leat::tools
