#include "datasets/read_part.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

namespace leat::datasets {

void append_part(const dataset_model& model, std::uint64_t sample, const part& wanted, blocking_sources& from,
                 std::vector<std::byte>& to, const std::stop_token& stop) {
  const extent& where = wanted.where;
  const auto read = [&](std::span<std::byte> into) {
    if (into.empty()) return;
    const blocking_source::request request{where.file, where.offset, into};
    from.of(*model.sources()[where.source]).read({&request, 1}, stop);
  };
  const std::size_t begin = to.size();
  if (wanted.decode == 0) {
    to.resize(begin + where.stored_bytes);
    return read(std::span(to).subspan(begin));
  }
  std::vector<std::byte> stored(where.stored_bytes);
  read(stored);
  to.resize(begin + where.decoded_bytes);
  if (const auto reason = model.expand(sample, wanted, stored, std::span(to).subspan(begin))) {
    throw error(errc::corrupt,
                str_cat(model.name(sample), ": field '", model.fields()[wanted.field].name, "' at offset ",
                        where.offset, " of ", model.sources()[where.source]->file_name(where.file), ": ", *reason));
  }
}

}  // namespace leat::datasets
