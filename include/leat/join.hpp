// Two datasets whose samples belong together by a key: pictures and masks, pictures and rows of a table.
//
//     join(open("images"), open("masks"), by_stem(), {.rename = {{"jpg", "mask"}}})
//     join(open("images"), open("labels.csv"), by("name", "file_name"))
#pragma once

#include <leat/compiler.hpp>
#include <leat/samples.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace leat {

/// What a sample of each side is found by: a column, or a field, whose bytes are then all read; or where there is none of this
/// name
///   stem   the file's name without folders and its last ending: "a/b.seg.png" is "b.seg"; in a shard the key
///   path   the sample's name without the last ending: "a/b.seg"
///   name   the sample's name, dataset::name()
struct join_key {
  std::string left;
  std::string right;
};
[[nodiscard]] inline join_key by_stem() { return {"stem", "stem"}; }
[[nodiscard]] inline join_key by(const std::string& both) { return {both, both}; }
[[nodiscard]] inline join_key by(std::string left, std::string right) { return {std::move(left), std::move(right)}; }

/// What becomes of samples of the left side that have no partner.
///   leave_out   (default) they are no samples of the result
///   corrupt     they are corrupt samples of it, of the kind "incomplete"
enum class without_partner : std::uint8_t { leave_out, corrupt };

///   rename   new names for fields and columns of the right side: {{"jpg", "mask"}}
struct join_options {
  without_partner missing = without_partner::leave_out;
  std::vector<std::pair<std::string, std::string>> rename = {};
};

/// The samples that both sides have, in the order of the left one, with the fields and columns of both. Its name is that in
/// the left one. What one side lacks is counted in notes().
///   memory   while it is opened 16 bytes for each sample of both sides; then 8 at most for each sample. No key is kept
///   resume   a state has the digests of both sides and of what was paired
///   throws   error{errc::usage}: two samples of a side have one key, with both names; a field or column that both sides
///            have, or that rename gives a name that is taken; a key that a side does not have. error{errc::not_found}: no
///            sample has a partner, with keys of both sides. error{errc::io} as the keys are read
[[nodiscard]] dataset join(const dataset& left, const dataset& right, const join_key& key,
                           const join_options& options = {});

}  // namespace leat
#pragma GCC visibility pop
