// The SOURCE... of a subcommand as a dataset.
#pragma once

#include "datasets/files/raw_files.hpp"
#include "tools/interruption.hpp"

#include <leat/open.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_tokens.hpp>
#include <leat/samples.hpp>

#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace leat::tools {

/// --allow-http, --endpoint and others: how objects at addresses are read. Without --cache and its sizes.
void add_remote_options(CLI::App& app, remote_options& remote);
/// --cache-bytes and --cache-block-bytes.
void add_cache_sizes(CLI::App& app, remote_options& remote);

/// --ignore-zeros, --index, --index-use and others.
void add_opening_options(CLI::App& app, open_options& opening);

/// While it lives a stop request ends the process with the interruption's exit code, on another thread, after `leave` has had
/// the last word: for work that cannot be stopped half-way and has written nothing.
class leaving_at_once {
 public:
  leaving_at_once(interruption& stop, const std::function<void()>& leave);

 private:
  std::stop_callback<std::function<void()>> leaving_;
};

/// As it may be shown: an address without its query, which may be a signature.
[[nodiscard]] std::string shown_source(const std::string& source);

/// What a command that loads says of a file that could be tokens.
[[nodiscard]] std::string advise_loading(dtype type);

/// What the command line says of its sources: nothing, files of tokens, or of arrays.
struct source_kind {
  std::optional<token_options> tokens = std::nullopt;
  std::optional<npy_options> arrays = std::nullopt;
  open_options opening = {};
  bool one_by_one = false;  ///< each source is a part of its own of a concat()
  std::string images = {};  ///< a folder: the source is a file of COCO's annotations of its pictures
};

/// leat::open(), or leat::open_tokens() where `kind` has tokens, leat::open_npy() where it has arrays, leat::open_coco() where it has
/// images, saying on a terminal that it is at it. Opening is left at once.
///   advice   what this command can do with a file that could be tokens
///   throws   as those, by as_named(); error{errc::usage} where there is no sample, with the first note if there is any, or
///            where the tokens given have another type than the files say that they have
[[nodiscard]] dataset open_sources(const std::vector<std::string>& sources, interruption& stop,
                                   const std::function<void()>& leave, datasets::token_advice advice,
                                   const source_kind& kind = {});

/// An option and the file that it writes; empty: it was not given.
using written_file = std::pair<std::string_view, const std::string*>;

/// For who writes files: one that the samples are read from would be lost.
///   throws   error{errc::usage} naming option and file
void check_writes_no_sample(const dataset& samples, std::span<const written_file> files);

/// What is odd about a source, as warnings of this command on standard error: the first few, each once.
void tell_notes(std::string_view command, const dataset& samples);

/// The same for JSON: all of them.
[[nodiscard]] std::vector<std::string> notes_of(const dataset& samples);

}  // namespace leat::tools
