#include "tools/text_tokens.hpp"

#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/each_value.hpp"
#include "stages/tokenize/tokenizer_state.hpp"
#include "tools/fields.hpp"
#include "tools/human.hpp"
#include "tools/large_pictures.hpp"
#include "tools/status_line.hpp"
#include "tools/terminal.hpp"

#include <leat/error.hpp>

#include <absl/strings/str_format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

namespace leat::tools {
namespace {

constexpr std::array<double, 7> shares_shown = {0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99};

/// Texts by their tokens: powers of two.
struct bucket {
  std::uint64_t from = 0;
  std::uint64_t to = 0;  // exclusive
  std::uint64_t texts = 0;
};

std::vector<bucket> buckets_of(const std::vector<std::uint32_t>& sorted) {
  std::vector<bucket> all;
  for (auto at = sorted.begin(); at != sorted.end();) {
    const std::uint64_t from = *at == 0 ? 0 : std::bit_floor(std::uint64_t{*at});
    const std::uint64_t to = from == 0 ? 1 : 2 * from;
    const auto end = std::lower_bound(at, sorted.end(), to);
    // Those without a text in between, too.
    while (!all.empty() && all.back().to < from)
      all.push_back({all.back().to, std::max<std::uint64_t>(2 * all.back().to, 2), 0});
    all.push_back({from, to, static_cast<std::uint64_t>(end - at)});
    at = end;
  }
  return all;
}

// What a vocabulary calls what it lacks. Byte-level ones have none.
std::optional<std::uint32_t> unknown_of(const tokenizer& words) {
  for (const std::string_view name : {"<unk>", "[UNK]", "<|unk|>"}) {
    if (const std::optional<std::int32_t> id = words.find(name)) return static_cast<std::uint32_t>(*id);
  }
  return std::nullopt;
}

}  // namespace

text_field text_field_of(const dataset& opened, const std::string& named) {
  const std::vector<field_info> fields = opened.fields();
  const auto is_tokens = [](const field_info& each) { return each.kind == field_kind::tokens; };
  if (std::any_of(fields.begin(), fields.end(), is_tokens)) {
    throw error(errc::usage, "the source holds tokens already, and no texts");
  }
  const chosen_fields chosen = fields_of(opened, {});
  std::vector<std::string> texts = chosen.texts;
  if (!named.empty()) {
    texts = {named};
  } else if (texts.size() > 1) {
    for (const std::string_view usual : {"text", "txt"}) {
      if (std::find(texts.begin(), texts.end(), usual) == texts.end()) continue;
      texts = {std::string(usual)};
      break;
    }
  }
  const datasets::dataset_model& model = *chosen.samples.model();
  std::string all;
  for (const field_info& each : model.fields()) str_append(all, all.empty() ? "" : ", ", each.name);
  if (texts.size() != 1) {
    throw error(errc::usage,
                str_cat(texts.empty() ? "the source has no field of texts" : "the source has several fields of texts",
                        "; say which with --field, of ", all));
  }
  const std::optional<std::uint16_t> number = model.find_field(texts.front());
  if (!number) throw error(errc::usage, str_cat("the source has no field '", texts.front(), "'; it has ", all));
  const field_kind kind = model.fields()[*number].kind;
  if (kind != field_kind::text && kind != field_kind::bytes) {
    throw error(errc::usage, str_cat("--field ", texts.front(), " holds no texts; the source has ", all));
  }
  return {.samples = chosen.samples, .number = *number, .name = texts.front()};
}

std::uint32_t token_survey::at(double share) const {
  if (counts.empty()) return 0;
  const auto place = static_cast<std::size_t>(share * static_cast<double>(counts.size()));
  return counts[std::min(place, counts.size() - 1)];
}

token_survey survey_tokens(const text_field& of, const tokenizer& words, std::string path, std::uint64_t host_bytes_max,
                           measuring_progress& so_far) {
  const stages::text_encoder& encoder = words.get()->encoder;
  const std::optional<std::uint32_t> unknown = unknown_of(words);
  token_survey found{.field = of.name, .tokenizer = std::move(path)};
  so_far.measured = 0;
  so_far.pictures = of.samples.size();
  std::mutex mutex;
  std::uint32_t longest = 0;
  struct scratch {
    explicit scratch(const stages::text_encoder& of) : encoding(of) {}
    stages::encode_scratch encoding;
    std::vector<std::uint32_t> ids;
  };
  const std::uint16_t fields[] = {of.number};
  datasets::for_each_value(*of.samples.model(), fields, host_bytes_max, [&]() -> datasets::value_use {
    auto own = std::make_shared<scratch>(encoder);
    return [&, own](std::uint64_t sample, const datasets::seen_value& text) {
      own->ids.clear();
      bool is_read = text.bytes.has_value();
      if (is_read) {
        const std::string_view bytes(reinterpret_cast<const char*>(text.bytes->data()), text.bytes->size());
        is_read = !encoder.encode(bytes, {.around = false}, own->encoding, own->ids);
      }
      ++so_far.measured;
      const std::uint64_t of_text =
          unknown ? static_cast<std::uint64_t>(std::count(own->ids.begin(), own->ids.end(), *unknown)) : 0;
      const std::lock_guard lock(mutex);
      if (!is_read) {
        ++found.unreadable;
        return;
      }
      const auto count = static_cast<std::uint32_t>(own->ids.size());
      if (found.counts.empty() || count > longest || (count == longest && sample < found.longest_sample)) {
        longest = count;
        found.longest_sample = sample;
      }
      found.counts.push_back(count);
      found.tokens += count;
      found.bytes += text.bytes->size();
      found.unknown += of_text;
    };
  });
  std::sort(found.counts.begin(), found.counts.end());
  return found;
}

nlohmann::ordered_json as_json(const token_survey& found) {
  nlohmann::ordered_json json{{"field", found.field},         {"tokenizer", found.tokenizer},
                              {"texts", found.counts.size()}, {"unreadable", found.unreadable},
                              {"tokens", found.tokens},       {"bytes", found.bytes},
                              {"unknown", found.unknown}};
  if (found.counts.empty()) return json;
  json["least"] = found.counts.front();
  json["longest"] = {{"tokens", found.counts.back()}, {"sample", found.longest_sample}};
  json["mean"] = static_cast<double>(found.tokens) / static_cast<double>(found.counts.size());
  nlohmann::ordered_json& percentiles = json["percentiles"];
  for (const double share : shares_shown) percentiles[absl::StrFormat("%g", 100 * share)] = found.at(share);
  nlohmann::ordered_json& histogram = json["histogram"] = nlohmann::ordered_json::array();
  for (const bucket& each : buckets_of(found.counts)) {
    histogram.push_back({{"from", each.from}, {"to", each.to}, {"texts", each.texts}});
  }
  return json;
}

std::string as_text(const terminal& screen, const token_survey& found, const dataset& samples) {
  constexpr std::size_t bar_columns = 36;
  std::string text = str_cat("\n", screen.bold(str_cat("tokens of '", found.field, "'")), "\n");
  const std::vector<bucket> buckets = buckets_of(found.counts);
  std::uint64_t most = 1;
  for (const bucket& each : buckets) most = std::max(most, each.texts);
  for (const bucket& each : buckets) {
    const double share = static_cast<double>(each.texts) / static_cast<double>(most);
    // What is there is seen, however little it is.
    const double visible = each.texts > 0 ? std::max(share, 0.13 / static_cast<double>(bar_columns)) : 0;
    text += absl::StrFormat("  %11s to %11s  %s %s\n", count_text(each.from), count_text(each.to - 1),
                            bar_text(screen, bar_columns, visible, bar_rest::blank),
                            each.texts > 0 ? count_text(each.texts) : "");
  }
  if (!found.counts.empty()) {
    str_append(text, "  percentiles:");
    for (const double share : shares_shown) {
      str_append(text, share == shares_shown.front() ? " " : ", ", absl::StrFormat("%g", 100 * share),
                 " %: ", count_text(found.at(share)));
    }
    str_append(text, "\n  longest: ", count_text(found.counts.back()), ", ",
               one_line(samples.name(found.longest_sample)), "\n  ", count_text(found.tokens), " tokens of ",
               bytes_text(found.bytes), ": ",
               with_decimals(
                   static_cast<double>(found.bytes) / static_cast<double>(std::max<std::uint64_t>(found.tokens, 1)), 2),
               " bytes a token; ", count_text(found.unknown), " unknown (",
               with_decimals(100 * static_cast<double>(found.unknown) /
                                 static_cast<double>(std::max<std::uint64_t>(found.tokens, 1)),
                             3),
               " %)\n");
  }
  if (found.unreadable != 0) {
    str_append(text, "  ",
               screen.warning(str_cat(counted(found.unreadable, "text", "texts"),
                                      " missing, damaged, or too large for --host-bytes-max")),
               "\n");
  }
  return text;
}

}  // namespace leat::tools
