// SentencePiece's tokenizer.model: a protocol buffer of pieces, and of how a text is normalised.
//   source   google/sentencepiece 0.2.3: sentencepiece_model.proto, model_interface.cc, bpe_model.cc, unigram_model.cc
#include "base/hash_map.hpp"
#include "base/proto_message.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "stages/tokenize/reference_letters.hpp"
#include "stages/tokenize/tokenizer_parts.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

enum class piece_type : std::uint8_t { normal = 1, unknown, control, user_defined, unused, byte };

struct piece {
  std::string text;
  float score = 0;
  piece_type type = piece_type::normal;

  // What a text may become, and not a token of another kind that is written likewise.
  [[nodiscard]] bool is_of_text() const {
    return type == piece_type::normal || type == piece_type::user_defined || type == piece_type::unused;
  }
};

// TrainerSpec.ModelType
constexpr std::uint64_t unigram_type = 1;
constexpr std::uint64_t bpe_type = 2;

struct piece_file {
  std::vector<piece> pieces;
  std::uint64_t model = unigram_type;
  bool byte_fallback = false;
  bool suffix = false;
  std::string eos = "</s>";
  std::string map;
  bool dummy_prefix = true;
  bool lone_spaces = true;
  bool escape = true;
};

constexpr std::string_view mark = "\xE2\x96\x81";
// A text is looked through from each of its places, so far at most; and a piece of bpe is cut at each of its letters.
constexpr std::size_t piece_bytes_max = 1024;
constexpr std::string_view zero("\0", 1);

[[noreturn]] void model_damaged(const std::string& what) { throw error(errc::format, what); }
[[noreturn]] void model_refused(const std::string& what) {
  throw error(errc::unsupported, str_cat(what, " is not read; SentencePiece's unigram and bpe are"));
}

std::string shown(std::string_view text) { return str_cat("'", text.substr(0, 40), "'"); }

piece read_piece(std::span<const std::byte> bytes) {
  piece made;
  for (proto_message member(bytes); member.next();) {
    if (member.is(1, proto_wire::bytes)) made.text = member.text();
    if (member.is(2, proto_wire::fixed32)) made.score = member.number_f32();
    if (member.is(3, proto_wire::varint)) {
      if (member.integer() < 1 || member.integer() > 6)
        model_refused(str_cat("a piece of the type ", member.integer()));
      made.type = static_cast<piece_type>(member.integer());
    }
  }
  return made;
}

void read_trainer(std::span<const std::byte> bytes, piece_file& to) {
  for (proto_message member(bytes); member.next();) {
    if (member.is(3, proto_wire::varint)) to.model = member.integer();
    if (member.is(24, proto_wire::varint)) to.suffix = member.integer() != 0;
    if (member.is(35, proto_wire::varint)) to.byte_fallback = member.integer() != 0;
    if (member.is(47, proto_wire::bytes) && !member.text().empty()) to.eos = member.text();
  }
}

void read_normalizing(std::span<const std::byte> bytes, piece_file& to) {
  for (proto_message member(bytes); member.next();) {
    if (member.is(2, proto_wire::bytes)) to.map = member.text();
    if (member.is(3, proto_wire::varint)) to.dummy_prefix = member.integer() != 0;
    if (member.is(4, proto_wire::varint)) to.lone_spaces = member.integer() != 0;
    if (member.is(5, proto_wire::varint)) to.escape = member.integer() != 0;
  }
}

piece_file read_file(std::string_view bytes) {
  piece_file file;
  for (proto_message member(std::as_bytes(std::span(bytes))); member.next();) {
    if (member.is(1, proto_wire::bytes)) file.pieces.push_back(read_piece(member.bytes()));
    if (member.is(2, proto_wire::bytes)) read_trainer(member.bytes(), file);
    if (member.is(3, proto_wire::bytes)) read_normalizing(member.bytes(), file);
  }
  if (file.pieces.empty()) model_damaged("it has no pieces; is it a SentencePiece model?");
  if (file.pieces.size() > std::numeric_limits<std::int32_t>::max()) model_damaged("it has too many pieces");
  return file;
}

// <0x00> to <0xFF>; -1: another text.
int byte_of(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  constexpr std::string_view digits = "0123456789ABCDEF";
  const std::size_t high = digits.find(text[3]);
  const std::size_t low = digits.find(text[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return -1;
  return static_cast<int>(high * 16 + low);
}

// The pieces by their kinds: what the reference refuses is refused.
void sort_pieces(piece_file& file, tokenizer_parts& to) {
  const bool is_bpe = file.model == bpe_type;
  constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> of_bytes(256, none);
  hash_map<std::string, bool> texts[2];
  normal_step& normal = to.normalizing.emplace_back(normal_step{.what = normal_step::kind::sentencepiece});
  normal.text = std::move(file.map);
  normal.dummy_prefix = file.dummy_prefix;
  normal.lone_spaces = file.lone_spaces;
  normal.escape = file.escape;
  normal.suffix = file.suffix;
  float least = std::numeric_limits<float>::max();
  for (std::uint32_t id = 0; id < file.pieces.size(); ++id) {
    piece& each = file.pieces[id];
    // Programs that convert other files write such a one beside <0x00>.
    if (each.text == zero && (file.byte_fallback || each.type == piece_type::unused)) each.type = piece_type::unused;
    const bool is_zero = each.text == zero && each.type == piece_type::unused;
    if (each.text.empty()) model_damaged(str_cat("the piece ", id, " has no text"));
    if (!is_zero && each.text.find('\0') != std::string::npos)
      model_damaged(str_cat("the piece ", id, " has a zero byte"));
    if (first_invalid_utf8(std::as_bytes(std::span(each.text))))
      model_damaged(str_cat("the piece ", id, " is no UTF-8"));
    if (!is_zero && !texts[is_bpe || each.is_of_text() ? 1 : 0].emplace(each.text, true).second)
      model_damaged(str_cat("the piece ", shown(each.text), " is there twice"));
    if (!is_bpe && !std::isfinite(each.score))
      model_damaged(str_cat("the score of ", shown(each.text), " is no number"));
    if (each.text.size() > piece_bytes_max) {
      model_refused(str_cat("a piece of ", each.text.size(), " bytes, ", shown(each.text), " (up to ", piece_bytes_max,
                            " are),"));
    }
    to.vocabulary.push_back({.bytes = each.text, .id = id});
    switch (each.type) {
      case piece_type::normal:
        least = std::min(least, each.score);
        to.known.push_back({.bytes = each.text, .id = id});
        to.scores.push_back(each.score);
        break;
      case piece_type::user_defined:
        to.known.push_back({.bytes = each.text, .id = id});
        // source: GetUserDefinedScore()
        to.scores.push_back(static_cast<float>(0.1 * (static_cast<int>(each.text.size()) - 1)));
        to.frozen.push_back({.bytes = each.text, .id = id});
        normal.kept.push_back(each.text);
        break;
      case piece_type::unused:
        if (is_bpe && !is_zero) model_refused(str_cat("the unused piece ", shown(each.text), " of a bpe model"));
        break;
      case piece_type::unknown:
        if (to.unknown) model_damaged("it has two unknown pieces");
        to.unknown = id;
        break;
      case piece_type::control:
        break;
      case piece_type::byte: {
        const int byte = byte_of(each.text);
        if (byte < 0) model_damaged(str_cat("the piece ", shown(each.text), " is no byte"));
        if (!file.byte_fallback)
          model_damaged(str_cat("the piece ", shown(each.text), " stands for a byte, and byte_fallback is off"));
        of_bytes[static_cast<std::size_t>(byte)] = id;
        break;
      }
    }
    if (each.type == piece_type::control || each.type == piece_type::unknown) {
      constexpr std::size_t special_bytes_max = 256;  // They are looked for from each place of a text.
      if (each.text.size() > special_bytes_max)
        model_refused(str_cat("a control piece of ", each.text.size(), " bytes (up to ", special_bytes_max, " are)"));
      to.added.push_back({.text = each.text, .id = id, .special = true});
    }
    if (each.type == piece_type::control && each.text == file.eos) to.eos = each.text;
  }
  if (!to.unknown) model_refused("a model without an unknown piece");
  if (to.known.empty()) model_damaged("it has no piece that a text becomes");
  if (file.byte_fallback) {
    if (std::find(of_bytes.begin(), of_bytes.end(), none) != of_bytes.end())
      model_damaged("byte_fallback is on, and it has not all of <0x00> to <0xFF>");
    to.of_bytes = std::move(of_bytes);
  }
  // source: kUnkPenalty
  to.unknown_score = least - 10.0F;
}

// Nothing is a token over the begin of a run of spaces, or over its end: a text is cut into words there, which are as good as the whole.
void cut_at_marks(const piece_file& file, tokenizer_parts& to) {
  bool begins = true;
  bool ends = true;
  bool has_mark = false;
  for (const vocabulary_entry& each : to.known) {
    has_mark = has_mark || each.bytes == mark;
    std::string_view rest = each.bytes;
    while (rest.starts_with(mark)) rest.remove_prefix(mark.size());
    begins = begins && rest.find(mark) == std::string_view::npos;
    rest = each.bytes;
    while (rest.ends_with(mark)) rest.remove_suffix(mark.size());
    ends = ends && rest.find(mark) == std::string_view::npos;
  }
  // Without a piece of its own the mark is unknown, and may be one with unknown letters before it.
  if (!has_mark || !(file.suffix ? ends : begins)) return;
  to.splits.push_back({.expression = std::string(mark),
                       .keeps = file.suffix ? split_rule::keeping::behind : split_rule::keeping::before,
                       .what = split_rule::kind::runs});
}

// As the reference orders them: as whole numbers, so that it is an order whatever they are.
std::int32_t order_of(float score) {
  const auto bits = std::bit_cast<std::int32_t>(score);
  return bits < 0 ? bits ^ std::numeric_limits<std::int32_t>::max() : bits;
}

// Two neighbours become one where their text is a piece, the one of the greatest score first. So a piece may come of each of its cuts.
void merge_pieces(const piece_file& file, tokenizer_parts& to) {
  hash_map<std::string, std::uint32_t> ids;
  for (const vocabulary_entry& each : to.known) {
    if (file.pieces[each.id].type == piece_type::normal) ids.emplace(each.bytes, each.id);
  }
  std::vector<std::uint32_t> by_score;
  for (const vocabulary_entry& each : to.known) {
    if (file.pieces[each.id].type == piece_type::normal) by_score.push_back(each.id);
  }
  std::sort(by_score.begin(), by_score.end(), [&](std::uint32_t a, std::uint32_t b) {
    return order_of(file.pieces[a].score) > order_of(file.pieces[b].score);
  });
  const auto id_of_part = [&](const std::string& part) {
    if (const auto found = ids.find(part); found != ids.end()) return std::pair(found->second, true);
    if (letter_at(part, 0).bytes != part.size()) return std::pair(std::uint32_t{0}, false);
    const auto id = static_cast<std::uint32_t>(file.pieces.size() + to.letters.size());
    ids.emplace(part, id);
    to.letters.push_back({.bytes = part, .id = id});
    return std::pair(id, true);
  };
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < by_score.size(); ++i) {
    const piece& made = file.pieces[by_score[i]];
    if (i > 0 && order_of(made.score) != order_of(file.pieces[by_score[i - 1]].score)) ++rank;
    for (std::size_t cut = letter_at(made.text, 0).bytes; cut < made.text.size();
         cut += letter_at(made.text, cut).bytes) {
      const auto [left, is_left] = id_of_part(made.text.substr(0, cut));
      if (!is_left) continue;
      const auto [right, is_right] = id_of_part(made.text.substr(cut));
      if (is_right) to.merges.push_back({.left = left, .right = right, .id = by_score[i], .rank = rank});
    }
  }
}

}  // namespace

tokenizer_parts parse_sentencepiece(std::string_view bytes) {
  piece_file file;
  try {
    file = read_file(bytes);
  } catch (const error& wrong) {
    throw error(wrong.code(), str_cat(wrong.what(), " (a SentencePiece model is a protocol buffer)"));
  }
  tokenizer_parts parts;
  if (file.model == unigram_type) {
    parts.model = word_model_kind::piece_unigram;
  } else if (file.model == bpe_type) {
    parts.model = word_model_kind::piece_pairs;
  } else {
    model_refused(file.model == 3   ? "a model of words"
                  : file.model == 4 ? "a model of characters"
                                    : str_cat("a model of the type ", file.model));
  }
  sort_pieces(file, parts);
  cut_at_marks(file, parts);
  if (parts.model == word_model_kind::piece_pairs) merge_pieces(file, parts);
  return parts;
}

}  // namespace leat::stages
