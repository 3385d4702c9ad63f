// tokenize: a text as the numbers of its tokens.
#include "base/hasher.hpp"
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/each_value.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/kept_counts.hpp"
#include "stages/fields/long_texts.hpp"
#include "stages/fields/packed_pieces.hpp"
#include "stages/fields/padded_row.hpp"
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

  void pack(const rank_packing& by, bool with_places) override {
    if (settings_.pad) {
      throw error(errc::usage, str_cat("tokenize '", settings_.name,
                                       "': rows are packed, and pad() fills rows of one text each; leave it out"));
    }
    packed_.emplace(by, str_cat("tokenize '", settings_.name, "'"), settings_.name, settings_.type);
    with_places_ = with_places;
    outputs_.clear();
    packed_->add_outputs(outputs_, with_places);
    if (chat_) packed_->add_output_of_batch(outputs_, "labels");
    facets_.ragged = this;
    facets_.finishing = this;
    if (packed_->may_fetch()) facets_.fetching = this;
  }
  bool fetches(std::uint64_t sample) const override { return packed_->fetches(sample); }

  std::size_t ragged_bytes(std::size_t output, std::size_t encoded_bytes) const override {
    if (packed_ && output != 0) return 0;
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
    if (packed_) return decode_piece(own, input, rows.front());
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
    packed_->finish(all, with_places_);
    if (chat_) write_labels(all);
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

  /// Of pieces as packed_pieces wrote them: which of their tokens are labels is in their highest bit, until here.
  void write_labels(finished_rows& all) const {
    const std::size_t output = outputs_.size() - 1;
    std::byte* const ids = all.room(0).data();
    std::byte* const labels = all.room(output).data();
    std::byte* at = labels;
    for (std::size_t i = 0; i < packed_->tokens(all); ++i) at = packed_->put(at, no_label);
    for (const placed_piece& each : all.pieces()) {
      std::byte* id = ids + each.begin * size_bytes(settings_.type);
      std::byte* label = labels + each.begin * size_bytes(settings_.type);
      for (std::size_t i = 0; i < each.count; ++i) {
        std::uint32_t token = 0;
        std::memcpy(&token, id, sizeof token);  // the low half of an i64
        id = put(id, token & ~chat_template::counts);
        label = put(label, label_of(token));
      }
    }
    all.made(output, packed_->shape(all));
  }
  [[nodiscard]] static std::int64_t label_of(std::uint32_t token) {
    return (token & chat_template::counts) != 0 ? std::int64_t{token & ~chat_template::counts} : no_label;
  }

  /// The text's tokens, `limit` of them with those around it, or why there are none. Of a chat those that are labels have
  /// chat_template::counts, which a packed piece keeps until write_labels(): so its digest is of labels too.
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
        if (!settings_.chat->mask_prompt) {
          for (std::uint32_t& id : own.ids) id |= chat_template::counts;
        }
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
    return packed_->write(shared ? shared->ids : own.ids, input, to);
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
  std::optional<packed_pieces> packed_;
  bool with_places_ = false;
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
