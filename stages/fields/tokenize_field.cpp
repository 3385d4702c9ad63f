// tokenize: a text as the numbers of its tokens.
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/padded_row.hpp"
#include "stages/tokenize/tokenizer_state.hpp"

#include <leat/error.hpp>
#include <leat/tokenizer.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
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
  std::vector<std::uint32_t> ids;
};

class tokenize_program final : public field_program, ragged_facet {
 public:
  tokenize_program(const tokenize::settings& settings, tokenizer words, std::vector<std::uint16_t> fields)
      : field_program({}, std::move(fields), {.scratch_bytes = encode_scratch::bytes_least}),
        settings_(settings),
        words_(std::move(words)),
        encoder_(words_.get()->encoder),
        around_((settings_.around ? encoder_.ids_around() : 0) + (settings_.eos ? 1 : 0)) {
    if (settings_.pad) {
      outputs_.push_back({.name = settings_.name, .type = settings_.type, .row_shape = {*settings_.pad}});
      outputs_.push_back({.name = settings_.name + ".length", .type = dtype::i64});
      if (settings_.mask) {
        outputs_.push_back({.name = settings_.name + ".mask", .type = dtype::boolean, .row_shape = {*settings_.pad}});
      }
      return;
    }
    outputs_.push_back({.name = settings_.name, .type = settings_.type, .ragged = true});
    facets_.ragged = this;
  }

  std::size_t ragged_bytes(std::size_t /*output*/, std::size_t encoded_bytes) const override {
    std::size_t ids = encoder_.ids_most(encoded_bytes) + around_;
    if (settings_.truncate) ids = std::min(ids, static_cast<std::size_t>(*settings_.truncate));
    return ids * size_bytes(settings_.type);
  }
  std::unique_ptr<field_scratch> make_scratch(pixels::scratch_budget&) const override {
    return std::make_unique<tokenize_scratch>(encoder_);
  }

  outcome<void> decode(field_scratch& scratch, const decode_input& input, std::span<row_target> rows) const override {
    auto& own = static_cast<tokenize_scratch&>(scratch);
    const std::size_t room = rows.front().bytes.size() / size_bytes(settings_.type);
    // A row has room for as many tokens as bytes. A text that is no UTF-8 may have more, and may not be cut there without a word.
    const bool is_cut = settings_.truncate && static_cast<std::size_t>(*settings_.truncate) <= room;
    const std::size_t limit = is_cut ? static_cast<std::size_t>(*settings_.truncate) : room;
    const std::size_t eos = settings_.eos ? 1 : 0;
    own.ids.clear();
    const std::string_view text(reinterpret_cast<const char*>(input.encoded.data()), input.encoded.size());
    try {
      // Where a text may not be cut, one token more than there is room for says that it has to be.
      const encode_options how{.special_in_text = settings_.special_in_text,
                               .around = settings_.around,
                               .ids_max = limit - std::min(limit, eos) + (is_cut ? 0 : 1)};
      if (auto wrong = encoder_.encode(text, how, own.encoding, own.ids))
        return corrupt(std::move(*wrong), corrupt_kinds::unsupported);
    } catch (const error& wrong) {
      return corrupt(str_cat("the tokenizer cannot cut it into words: ", wrong.what()), corrupt_kinds::unsupported);
    }
    if (settings_.eos) own.ids.push_back(static_cast<std::uint32_t>(*settings_.eos));
    if (own.ids.size() > limit) {
      return corrupt(settings_.pad ? str_cat("has more than ", room, " tokens; tokenize::truncate() cuts it")
                                   : std::string("is no UTF-8, and has more tokens than bytes"));
    }
    write(own.ids, rows);
    return {};
  }

 private:
  void write(const std::vector<std::uint32_t>& ids, std::span<row_target> rows) const {
    std::byte* at = rows.front().bytes.data();
    const auto put = [&](std::int64_t value) {
      const auto narrow = static_cast<std::int32_t>(value);
      settings_.type == dtype::i64 ? std::memcpy(at, &value, sizeof value) : std::memcpy(at, &narrow, sizeof narrow);
      at += size_bytes(settings_.type);
    };
    if (settings_.type == dtype::i32) {
      if (!ids.empty()) std::memcpy(at, ids.data(), ids.size() * sizeof(std::uint32_t));
      at += ids.size() * sizeof(std::uint32_t);
    } else {
      for (const std::uint32_t id : ids) put(std::int64_t{id});
    }
    if (!settings_.pad) {
      rows.front().used = ids.size() * size_bytes(settings_.type);
      return;
    }
    const auto length = static_cast<std::int64_t>(ids.size());
    for (std::int64_t i = length; i < *settings_.pad; ++i) put(settings_.pad_value);
    write_length(rows, ids.size(), settings_.mask);
  }

  const tokenize::settings settings_;
  const tokenizer words_;
  const text_encoder& encoder_;
  const std::size_t around_;
};

class tokenize_model final : public one_program_field {
 public:
  tokenize_model(tokenize::settings settings, tokenizer words)
      : settings_(std::move(settings)), words_(std::move(words)) {}

  const std::string& name() const noexcept override { return settings_.name; }
  void describe(description& out) const override {
    out.add("kind", "tokenize");
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
  std::unique_ptr<field_program> program(const datasets::dataset_model& dataset, finished_by) const override {
    check();
    const std::string_view names[] = {settings_.member};
    std::vector<std::uint16_t> fields = find_fields(dataset, names);
    if (fields.empty()) throw_no_field(dataset, settings_.member, settings_.name);
    for (const std::uint16_t each : fields) {
      const field_info& info = dataset.fields()[each];
      const bool is_of_numbers = info.kind == field_kind::tensor && info.type != dtype::u8;
      if (is_of_numbers || info.kind == field_kind::tokens || info.kind == field_kind::picture) {
        throw_wrong_kind(info, settings_.name);
      }
    }
    return std::make_unique<tokenize_program>(settings_, words_, std::move(fields));
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw error(errc::usage, str_cat("tokenize '", settings_.name, "': ", what));
  }
  void check() const {
    if (settings_.type != dtype::i32 && settings_.type != dtype::i64) {
      refuse(str_cat("tokens are i32 or i64, not ", leat::name(settings_.type)));
    }
    if (settings_.mask && !settings_.pad) refuse("mask() is of rows that are filled up; call pad() too");
    constexpr std::int64_t most = std::int64_t{1} << 32;
    const std::size_t around = (settings_.around ? words_.get()->encoder.ids_around() : 0) + (settings_.eos ? 1 : 0);
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

  tokenize::settings settings_;
  tokenizer words_;
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
