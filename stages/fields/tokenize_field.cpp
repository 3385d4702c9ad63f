// tokenize: a text as the numbers of its tokens.
#include "base/hasher.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/each_value.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/kept_counts.hpp"
#include "stages/fields/long_texts.hpp"
#include "stages/fields/padded_row.hpp"
#include "stages/order/packing.hpp"
#include "stages/pixels/scratch.hpp"
#include "stages/tokenize/chat_template.hpp"
#include "stages/tokenize/tokenizer_state.hpp"

#include <leat/error.hpp>
#include <leat/tokenizer.hpp>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace stages {
namespace {

struct tokenize_scratch final : field_scratch {
  explicit tokenize_scratch(const text_encoder& of) : encoding(of) {}
  encode_scratch encoding;
  chat_scratch chatting;
  std::vector<std::uint32_t> ids;       // of a chat with chat_template::counts
  std::optional<std::uint64_t> sample;  // whose ids these are: its next piece has the same
};

// A shorter text is tokenised once a row.
constexpr std::uint64_t long_tokens = 4096;
// Memory that a longer text took is not kept for the next one.
constexpr std::size_t long_text_bytes = std::size_t{1} << 20;

// source: torch.nn.CrossEntropyLoss, ignore_index
constexpr std::int64_t no_label = -100;

constexpr std::uint64_t row_elements_max = std::numeric_limits<std::uint32_t>::max();

class tokenize_program final : public field_program, ragged_facet, packable_facet, finishing_facet, fetching_facet {
 public:
  tokenize_program(const tokenize::settings& settings, tokenizer words, std::vector<std::uint16_t> fields)
      : field_program({}, std::move(fields), {.scratch_bytes = encode_scratch::bytes_least}),
        settings_(settings),
        words_(std::move(words)),
        encoder_(words_.get()->encoder),
        around_((settings_.around ? encoder_.ids_around() : 0) + (settings_.eos ? 1 : 0)) {
    facets_.packable = this;
    if (settings_.chat) chat_.emplace(settings_.chat->template_name, encoder_, words_.get()->path);
    if (settings_.pad) {
      outputs_.push_back({.name = settings_.name, .type = settings_.type, .row_shape = {*settings_.pad}});
      outputs_.push_back({.name = settings_.name + ".length", .type = dtype::i64});
      if (settings_.mask) {
        outputs_.push_back({.name = settings_.name + ".mask", .type = dtype::boolean, .row_shape = {*settings_.pad}});
      }
      if (chat_) outputs_.push_back({.name = "labels", .type = settings_.type, .row_shape = {*settings_.pad}});
      return;
    }
    outputs_.push_back({.name = settings_.name, .type = settings_.type, .ragged = true});
    if (chat_) outputs_.push_back({.name = "labels", .type = settings_.type, .ragged = true});
    facets_.ragged = this;
  }

  void pack(const rank_packing& by) override {
    if (settings_.pad) {
      throw error(errc::usage, str_cat("tokenize '", settings_.name,
                                       "': rows are packed, and pad() fills rows of one text each; leave it out"));
    }
    const std::size_t length = by.of().row_tokens();
    const std::uint64_t tokens = std::uint64_t{by.rows_max()} * length;
    if (tokens > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
      throw error(errc::usage,
                  str_cat("tokenize '", settings_.name, "': ", by.rows_max(), " packed rows of ", length,
                          " tokens in a batch, whose places are i32; lower ", spelled(option_id::batch_size)),
                  option_id::batch_size);
    }
    if (settings_.type == dtype::i32 && !std::in_range<std::int32_t>(by.of().pad())) {
      throw error(errc::usage,
                  str_cat("tokenize '", settings_.name, "': the order's pad ", by.of().pad(), " is no i32"));
    }
    packed_ = &by;
    const std::size_t all = static_cast<std::size_t>(tokens);
    constexpr std::size_t place_bytes = sizeof(std::int32_t);
    outputs_.clear();
    outputs_.push_back({.name = settings_.name,
                        .type = settings_.type,
                        .ragged = true,
                        .of_batch_bytes = all * size_bytes(settings_.type),
                        .packed_tokens = length});
    // Each piece is a sequence, and so is what lies between two, or behind the last of a row.
    const std::size_t sequences = std::min(2 * std::size_t{by.pieces_max()} + by.rows_max(), all);
    const auto add = [&](std::string_view name, std::size_t elements) {
      outputs_.push_back({.name = settings_.name + std::string(name),
                          .type = dtype::i32,
                          .ragged = true,
                          .of_batch = true,
                          .of_batch_bytes = elements * place_bytes});
    };
    add(".positions", all);
    add(".documents", all);
    add(".cu_seqlens", sequences + 1);
    add(".max_seqlen", 1);
    if (chat_) {
      outputs_.push_back({.name = "labels",
                          .type = settings_.type,
                          .ragged = true,
                          .of_batch = true,
                          .of_batch_bytes = all * size_bytes(settings_.type)});
    }
    facets_.ragged = this;
    facets_.finishing = this;
    if (by.of().cuts_or_splits()) facets_.fetching = this;
  }
  // Of one that lies in a row or two, what is read with its neighbours costs less.
  bool fetches(std::uint64_t sample) const override {
    return packed_->of().tokens_of(sample) > std::max<std::uint64_t>(2 * packed_->of().row_tokens(), long_tokens);
  }

  std::size_t ragged_bytes(std::size_t output, std::size_t encoded_bytes) const override {
    if (packed_ != nullptr && output != 0) return 0;
    std::size_t ids = chat_ ? chat_->ids_most(encoded_bytes) : encoder_.ids_most(encoded_bytes) + around_;
    if (settings_.truncate) ids = std::min(ids, static_cast<std::size_t>(*settings_.truncate));
    return ids * size_bytes(settings_.type);
  }
  std::unique_ptr<field_scratch> make_scratch(pixels::scratch_budget& budget) const override {
    constexpr std::size_t kept_bytes_max = std::size_t{32} << 20;
    long_.keep_at_most(std::min(kept_bytes_max, budget.bytes_max() / 4));
    return std::make_unique<tokenize_scratch>(encoder_);
  }

  outcome<void> decode(field_scratch& scratch, const decode_input& input, std::span<row_target> rows) const override {
    auto& own = static_cast<tokenize_scratch&>(scratch);
    if (packed_ != nullptr) return decode_piece(own, input, rows.front());
    const std::size_t room = rows.front().bytes.size() / size_bytes(settings_.type);
    // A row has room for as many tokens as bytes. A text that is no UTF-8 may have more, and may not be cut there without a word.
    const bool is_cut = settings_.truncate && static_cast<std::size_t>(*settings_.truncate) <= room;
    const std::size_t limit = is_cut ? static_cast<std::size_t>(*settings_.truncate) : room;
    // Where a text may not be cut, one token more than there is room for says that it has to be.
    if (auto wrong = encode(own, input.encoded, is_cut ? limit : limit + 1)) {
      return corrupt(std::move(*wrong), corrupt_kinds::unsupported);
    }
    if (own.ids.size() > limit) {
      return corrupt(settings_.pad ? str_cat("has more than ", room, " tokens; tokenize::truncate() cuts it")
                                   : std::string("is no UTF-8, and has more tokens than bytes"));
    }
    write(own.ids, rows);
    return {};
  }

  void finish(finished_rows& all) const override {
    const std::size_t length = packed_->of().row_tokens();
    const std::size_t tokens = all.packed_rows() * length;
    packed_tensors to{.ids = all.room(0),
                      .positions = places_in(all, 1),
                      .documents = places_in(all, 2),
                      .cu_seqlens = places_in(all, 3),
                      .labels = chat_ ? all.room(packed_labels) : std::span<std::byte>()};
    to.cu_seqlens[to.sequences++] = 0;
    for (const placed_piece& each : all.pieces()) {
      fill(to, each.begin, length);
      std::iota(to.positions + each.begin, to.positions + each.begin + each.count, 0);
      std::fill_n(to.documents + each.begin, each.count, static_cast<std::int32_t>(each.document));
      if (chat_) label(to, each.begin, each.count);
      end_sequence(to, each.begin + each.count);
    }
    fill(to, tokens, length);
    *places_in(all, 4) = to.longest;
    const dimensions shape{std::int64_t{all.packed_rows()}, static_cast<std::int64_t>(length)};
    all.made(0, shape);
    all.made(1, shape);
    all.made(2, shape);
    all.made(3, {static_cast<std::int64_t>(to.sequences)});
    all.made(4, {1});
    if (chat_) all.made(packed_labels, shape);
  }

  /// The tokens of a text that is not packed or filled up: as many as its row has.
  ///   nothing   there are none, since decode() will say that it is corrupt
  [[nodiscard]] std::optional<std::size_t> count(tokenize_scratch& own, std::span<const std::byte> text) const {
    const std::size_t limit = settings_.truncate ? static_cast<std::size_t>(*settings_.truncate) : no_limit;
    if (encode(own, text, limit)) return std::nullopt;
    return own.ids.size();
  }

 private:
  static constexpr std::size_t no_limit = static_cast<std::size_t>(-1);
  static constexpr std::size_t packed_labels = 5;  // of a packed chat's outputs

  /// The tensors of a batch, from its first row on.
  ///   filled      so many tokens: what they are is said
  ///   sequences   of cu_seqlens
  struct packed_tensors {
    std::span<std::byte> ids;
    std::int32_t* positions = nullptr;
    std::int32_t* documents = nullptr;
    std::int32_t* cu_seqlens = nullptr;
    std::span<std::byte> labels = {};
    std::size_t filled = 0;
    std::size_t sequences = 0;
    std::int32_t longest = 0;
  };
  static std::int32_t* places_in(finished_rows& all, std::size_t output) {
    return reinterpret_cast<std::int32_t*>(all.room(output).data());
  }
  static void end_sequence(packed_tensors& to, std::size_t end) {
    to.longest = std::max(to.longest, static_cast<std::int32_t>(end - to.filled));
    to.filled = end;
    to.cu_seqlens[to.sequences++] = static_cast<std::int32_t>(end);
  }
  /// What no token fills, up to a place: of each row a sequence.
  void fill(packed_tensors& to, std::size_t end, std::size_t length) const {
    while (to.filled < end) {
      const std::size_t until = std::min(end, (to.filled / length + 1) * length);
      std::byte* at = to.ids.data() + to.filled * size_bytes(settings_.type);
      for (std::size_t i = to.filled; i < until; ++i) at = put(at, packed_->of().pad());
      std::fill(to.positions + to.filled, to.positions + until, 0);
      std::fill(to.documents + to.filled, to.documents + until, -1);
      if (chat_) {
        std::byte* label = to.labels.data() + to.filled * size_bytes(settings_.type);
        for (std::size_t i = to.filled; i < until; ++i) label = put(label, no_label);
      }
      end_sequence(to, until);
    }
  }
  /// Of a piece's tokens as decode_piece() wrote them: which of them count is in their highest bit, until here.
  void label(packed_tensors& to, std::size_t begin, std::size_t count) const {
    std::byte* id = to.ids.data() + begin * size_bytes(settings_.type);
    std::byte* label = to.labels.data() + begin * size_bytes(settings_.type);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t token = 0;
      std::memcpy(&token, id, sizeof token);  // the low half of an i64
      id = put(id, token & ~chat_template::counts);
      label = put(label, label_of(token));
    }
  }
  [[nodiscard]] std::int64_t label_of(std::uint32_t token) const {
    const bool is_label = !settings_.chat->mask_prompt || (token & chat_template::counts) != 0;
    return is_label ? std::int64_t{token & ~chat_template::counts} : no_label;
  }

  /// The text's tokens, `limit` of them with those around it, or why there are none.
  [[nodiscard]] std::optional<std::string> encode(tokenize_scratch& own, std::span<const std::byte> encoded,
                                                  std::size_t limit) const {
    const std::size_t eos = settings_.eos ? 1 : 0;
    own.sample.reset();
    own.ids.clear();
    const std::string_view text(reinterpret_cast<const char*>(encoded.data()), encoded.size());
    try {
      if (chat_) {
        if (auto wrong = chat_->encode(text, own.chatting, own.encoding, own.ids)) return wrong;
        if (own.ids.size() > limit) own.ids.resize(limit);
        return std::nullopt;
      }
      const encode_options how{.special_in_text = settings_.special_in_text,
                               .around = settings_.around,
                               .ids_max = limit == no_limit ? limit : limit - std::min(limit, eos)};
      if (auto wrong = encoder_.encode(text, how, own.encoding, own.ids)) return wrong;
    } catch (const error& wrong) {
      return str_cat("the tokenizer cannot cut it into words: ", wrong.what());
    }
    if (settings_.eos) own.ids.push_back(static_cast<std::uint32_t>(*settings_.eos));
    return std::nullopt;
  }

  outcome<void> decode_piece(tokenize_scratch& own, const decode_input& input, row_target& to) const {
    const std::uint32_t counted = packed_->of().tokens_of(input.sample);
    const std::size_t limit = settings_.truncate ? static_cast<std::size_t>(*settings_.truncate) : no_limit;
    std::shared_ptr<const long_texts::text> shared;
    if (facets_.fetching != nullptr && fetches(input.sample)) {
      shared =
          long_.of(*input.dataset, reads_, input.sample, input.encoded,
                   [&](std::span<const std::byte> text, std::vector<std::uint32_t>& ids) -> std::optional<failure> {
                     auto wrong = encode(own, text, limit);
                     ids = std::move(own.ids);
                     if (wrong) return corrupt(std::move(*wrong), corrupt_kinds::unsupported);
                     return std::nullopt;
                   });
      if (shared->wrong) return *shared->wrong;
    } else if (own.sample != input.sample) {
      if (auto wrong = encode(own, input.encoded, limit)) return corrupt(std::move(*wrong), corrupt_kinds::unsupported);
      own.sample = input.sample;
    }
    const std::vector<std::uint32_t>& ids = shared ? shared->ids : own.ids;
    if (ids.size() != counted) {
      return corrupt(str_cat("has ", ids.size(), " tokens, and had ", counted,
                             " when they were counted: the texts have changed since, or were damaged"));
    }
    const std::size_t count = to.bytes.size() / size_bytes(settings_.type);
    // Of a whole text nothing has to be found.
    const std::uint64_t first =
        count == counted
            ? 0
            : packed_->of().piece_of({.sample = input.sample, .draw = input.draw, .epoch = input.epoch}).first;
    assert(first + count <= ids.size());
    std::byte* at = to.bytes.data();
    for (std::size_t i = 0; i < count; ++i) at = put(at, std::int64_t{ids[first + i]});
    to.used = to.bytes.size();
    return {};
  }

  /// Returns where the next one goes.
  std::byte* put(std::byte* at, std::int64_t value) const {
    const auto narrow = static_cast<std::int32_t>(value);
    settings_.type == dtype::i64 ? std::memcpy(at, &value, sizeof value) : std::memcpy(at, &narrow, sizeof narrow);
    return at + size_bytes(settings_.type);
  }

  void write(const std::vector<std::uint32_t>& ids, std::span<row_target> rows) const {
    std::byte* at = rows.front().bytes.data();
    if (chat_) {
      at = write_chat(ids, rows);
    } else if (settings_.type == dtype::i32) {
      if (!ids.empty()) std::memcpy(at, ids.data(), ids.size() * sizeof(std::uint32_t));
      at += ids.size() * sizeof(std::uint32_t);
    } else {
      for (const std::uint32_t id : ids) at = put(at, std::int64_t{id});
    }
    if (!settings_.pad) {
      rows.front().used = ids.size() * size_bytes(settings_.type);
      return;
    }
    const auto length = static_cast<std::int64_t>(ids.size());
    for (std::int64_t i = length; i < *settings_.pad; ++i) at = put(at, settings_.pad_value);
    write_length(rows, ids.size(), settings_.mask);
  }

  /// Ids and labels; returns where the ids end.
  std::byte* write_chat(const std::vector<std::uint32_t>& ids, std::span<row_target> rows) const {
    std::byte* at = rows.front().bytes.data();
    std::byte* label = rows.back().bytes.data();
    for (const std::uint32_t id : ids) {
      at = put(at, id & ~chat_template::counts);
      label = put(label, label_of(id));
    }
    rows.back().used = ids.size() * size_bytes(settings_.type);
    if (!settings_.pad) return at;
    for (std::size_t i = ids.size(); i < static_cast<std::size_t>(*settings_.pad); ++i) label = put(label, no_label);
    rows.back().used = rows.back().bytes.size();
    return at;
  }

  const tokenize::settings settings_;
  const tokenizer words_;
  const text_encoder& encoder_;
  std::optional<chat_template> chat_;
  const std::size_t around_;
  const rank_packing* packed_ = nullptr;
  mutable long_texts long_;
};

class tokenize_model final : public one_program_field {
 public:
  tokenize_model(tokenize::settings settings, tokenizer words)
      : settings_(std::move(settings)), words_(std::move(words)) {}

  const std::string& name() const noexcept override { return settings_.name; }
  void describe(description& out) const override {
    out.add("kind", settings_.chat ? "chat" : "tokenize");
    if (settings_.chat) {
      out.add("template", settings_.chat->template_name);
      out.add("labels", settings_.chat->mask_prompt ? "of answers" : "of all tokens");
    }
    out.add("member", settings_.member);
    out.add("tokenizer", words_.identity().hex());
    out.add("type", leat::name(settings_.type));
    out.add("special", str_cat(settings_.around ? "around" : "none", settings_.special_in_text ? ", in texts" : ""));
    if (settings_.eos) out.add("eos", std::uint64_t{static_cast<std::uint32_t>(*settings_.eos)});
    if (settings_.truncate) out.add("truncate", static_cast<std::uint64_t>(*settings_.truncate));
    if (settings_.pad) {
      out.add("pad", str_cat(*settings_.pad, " with ", settings_.pad_value, settings_.mask ? ", mask" : ""));
    }
  }
  std::shared_ptr<const row_counts> counts(const std::shared_ptr<const datasets::dataset_model>& samples,
                                           const counting& how) const override {
    const std::lock_guard lock(counted_.mutex);
    if (counted_.counts && counted_.of.lock() == samples) return counted_.counts;
    counted_rows made = kept_counts(*samples, settings_.counts, str_cat("tokens of '", settings_.member, "'"),
                                    what_counts(), [&] { return count_all(*samples, how); });
    auto counts = std::make_shared<const row_counts>(std::move(made.counts));
    if (!made.is_final) return counts;  // Another run may have more of them.
    counted_.counts = std::move(counts);
    counted_.of = samples;
    return counted_.counts;
  }

 private:
  std::unique_ptr<field_program> program(const datasets::dataset_model& dataset, finished_by) const override {
    check();
    return std::make_unique<tokenize_program>(settings_, words_, members_of(dataset));
  }
  [[nodiscard]] std::vector<std::uint16_t> members_of(const datasets::dataset_model& dataset) const {
    const std::string_view names[] = {settings_.member};
    std::vector<std::uint16_t> fields = find_fields(dataset, names);
    if (fields.empty()) throw_no_field(dataset, settings_.member, settings_.name);
    for (const std::uint16_t each : fields) {
      const field_info& info = dataset.fields()[each];
      const bool is_of_numbers = info.kind == field_kind::tensor && info.type != dtype::u8;
      if (is_of_numbers || info.kind == field_kind::tokens || info.kind == field_kind::picture ||
          info.kind == field_kind::label) {
        throw_wrong_kind(info, settings_.name);
      }
    }
    return fields;
  }
  /// All that decides how many tokens a text has.
  [[nodiscard]] digest what_counts() const {
    hasher how;
    how.add("tokens");
    how.add(words_.identity());
    how.add(settings_.member);
    how.add(settings_.chat ? str_cat("chat ", settings_.chat->template_name) : std::string());
    for (const bool each : {settings_.eos.has_value(), settings_.special_in_text, settings_.around}) how.add(each);
    how.add(static_cast<std::uint64_t>(settings_.truncate.value_or(0)));
    return how.finish();
  }
  [[nodiscard]] counted_rows count_all(const datasets::dataset_model& dataset, const counting& how) const {
    check();
    const std::vector<std::uint16_t> fields = members_of(dataset);
    const tokenize_program counting_one(settings_, words_, fields);
    row_counts counts(dataset.size());
    std::atomic<bool> is_final = true;
    datasets::for_each_value(dataset, fields, how.bytes_max, [&]() -> datasets::value_use {
      auto own = std::make_shared<tokenize_scratch>(words_.get()->encoder);
      return [&, own](std::uint64_t sample, const datasets::seen_value& text) {
        if (text.unreadable != nullptr && how.raises) throw error(*text.unreadable);
        if (text.unreadable != nullptr || text.is_over) is_final = false;
        const std::size_t count = text.bytes ? counting_one.count(*own, *text.bytes).value_or(1) : 1;
        if (count > row_elements_max) refuse(str_cat("sample ", sample, " has ", count, " tokens; give truncate()"));
        counts[sample] = static_cast<std::uint32_t>(count);
        if (text.bytes && text.bytes->size() > long_text_bytes) *own = tokenize_scratch(words_.get()->encoder);
      };
    });
    return {.counts = std::move(counts), .is_final = is_final};
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw error(errc::usage, str_cat("tokenize '", settings_.name, "': ", what));
  }
  void check() const {
    if (settings_.type != dtype::i32 && settings_.type != dtype::i64) {
      refuse(str_cat("tokens are i32 or i64, not ", leat::name(settings_.type)));
    }
    if (settings_.mask && !settings_.pad) refuse("mask() is of rows that are filled up; call pad() too");
    constexpr std::int64_t most = std::int64_t{1} << 32;
    const std::size_t around =
        settings_.chat ? 0 : (settings_.around ? words_.get()->encoder.ids_around() : 0) + (settings_.eos ? 1 : 0);
    for (const auto& [name, length] : {std::pair("truncate", settings_.truncate), std::pair("pad", settings_.pad)}) {
      if (!length) continue;
      if (*length < 1 || *length > most) refuse(str_cat(name, "(", *length, "): 1 to ", most, " tokens"));
      if (static_cast<std::size_t>(*length) < around) {
        refuse(str_cat(name, "(", *length, "): the ", around, " tokens around a text need more room"));
      }
    }
    if (settings_.pad && settings_.truncate && *settings_.truncate > *settings_.pad) {
      refuse(str_cat("truncate(", *settings_.truncate, ") leaves more than pad(", *settings_.pad, ") has room for"));
    }
    if (settings_.type == dtype::i32 && !std::in_range<std::int32_t>(settings_.pad_value)) {
      refuse(str_cat("pad(): the value ", settings_.pad_value, " is no i32"));
    }
  }

  // Of the dataset that they were last asked for of: batch_at() and a loader of each epoch ask again.
  struct counted {
    std::mutex mutex;
    std::weak_ptr<const datasets::dataset_model> of;
    std::shared_ptr<const row_counts> counts;
  };

  tokenize::settings settings_;
  tokenizer words_;
  mutable counted counted_;
};

}  // namespace
}  // namespace stages

tokenize::tokenize(std::string member, tokenizer words) : words_(std::move(words)) {
  settings_.name = member;
  settings_.member = std::move(member);
}
tokenize tokenize::eos() const {
  if (!words_.get()->eos) {
    throw error(errc::usage, str_cat(words_.get()->path,
                                     " does not say which token ends a text, and no tokenizer_config.json beside it "
                                     "does; name it: .eos(\"<|endoftext|>\")"));
  }
  tokenize changed = *this;
  changed.settings_.eos = words_.get()->eos;
  return changed;
}
tokenize tokenize::eos(std::string_view token) const {
  const std::optional<std::int32_t> id = words_.find(token);
  if (!id) throw error(errc::usage, str_cat(words_.get()->path, " has no token '", token, "'"));
  tokenize changed = *this;
  changed.settings_.eos = id;
  return changed;
}
tokenize::operator field() const { return field(std::make_shared<stages::tokenize_model>(settings_, words_)); }

}  // namespace leat
