// Indexes of earlier runs, which save opening a source from looking through it again.
#pragma once

#include <leat/compiler.hpp>

#include <cstdint>
#include <functional>
#include <string>

#pragma GCC visibility push(default)
namespace leat {

/// Whether to use the index of an earlier run. An index has what opening a source found out, so that opening it again
/// takes milliseconds.
enum class index_use : std::uint8_t {
  off,      ///< do not read or write one
  check,    ///< use it if each file (of folders: each directory) has the same size and time as then; else build it
  rebuild,  ///< build and write it
  trust     ///< use it without looking at the files; build it if there is none. For objects at addresses: as check
};

/// Whether the index of a source was used.
///   why   its path if it was used; else why not
struct index_report {
  enum class outcome : std::uint8_t { used, written, none };
  std::string source;
  outcome what = outcome::none;
  std::string why;
};

/// Whether and where indexes of tar shards and folders are kept. An index that is damaged, or cannot be written, does
/// no harm: the source is read without it. Two processes may build one at the same time.
///   directory   where indexes lie. Empty (default): $XDG_CACHE_HOME/leat or ~/.cache/leat, for 10,000 samples or more
///               and for shards at addresses
///   on_report   called once for each source that may have an index
///   limit       two changes are not noticed: a file that was rewritten with the same size and time; and in a folder,
///               whose files are not looked at one by one, any file that was rewritten in place
struct index_options {
  index_use use = index_use::off;
  std::string directory = {};
  std::function<void(const index_report&)> on_report = {};
};

}  // namespace leat
#pragma GCC visibility pop
