// Files of tokens.
#pragma once

#include <leat/compiler.hpp>
#include <leat/remote.hpp>
#include <leat/samples.hpp>
#include <leat/source_names.hpp>

#include <optional>

#pragma GCC visibility push(default)
namespace leat {

///   type   the integer type of tokens in files without a header, such as nanoGPT's. Not set (default): u16. If it is
///          set, a file that begins almost like one of llm.c is taken as one without a header
///   remote   for files at addresses
struct token_options {
  std::optional<dtype> type = std::nullopt;
  remote_options remote = {};
};

/// Token files: the field "tokens" of field_kind::tokens. A sample is a document if there is an index of documents,
/// else a file. Pass the dataset to cut_windows(), and load its windows by the field leat::tokens. The format is found
/// by content:
///
///     nanoGPT    train.bin without a header: tokens of `token_options::type`
///     llm.c      a header of 256 int32: 20240520, 1: u16; 20240801, 7: u32
///     Megatron   name.bin with name.idx beside it (either may be named, or `name` alone): documents
///     NumPy      a one-dimensional .npy of integers
///
///   files    paths, brace lists and globs
///   throws   error{errc::not_found}; error{errc::format} sizes that do not fit together, with both;
///            error{errc::unsupported} versions and dtypes that hold no tokens; a header like llm.c's with another
///            magic number
///   source   karpathy/nanoGPT data/*/prepare.py; karpathy/llm.c dev/data/data_common.py; NVIDIA/Megatron-LM
///            megatron/core/datasets/indexed_dataset.py
[[nodiscard]] dataset open_tokens(const source_names& files, const token_options& options = {});

}  // namespace leat
#pragma GCC visibility pop
