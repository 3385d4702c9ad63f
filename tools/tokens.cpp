// leat tokens: the texts of a source as a file of tokens.
#include "base/cores_quota.hpp"
#include "base/file_start.hpp"
#include "base/text.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/joint_reads.hpp"
#include "stages/tokenize/tokenizer_state.hpp"
#include "tools/arguments.hpp"
#include "tools/human.hpp"
#include "tools/large_pictures.hpp"
#include "tools/output.hpp"
#include "tools/ranks.hpp"
#include "tools/run_record.hpp"
#include "tools/sources.hpp"
#include "tools/status_line.hpp"
#include "tools/subcommand.hpp"
#include "tools/text_tokens.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/tokenizer.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

using clock = std::chrono::steady_clock;

enum class token_form : std::uint8_t { plain, megatron };

struct tokens_arguments {
  std::vector<std::string> paths;  // the last is OUT
  std::string tokenizer;
  std::string field;
  std::string eos;
  bool no_eos = false;
  bool no_special = false;
  token_form to = token_form::plain;
  std::optional<dtype> type;
  bool skip = false;
  std::uint64_t host_bytes_max = host_bytes_usual;
  open_options opening;
  rank_options ranks;
  bool json = false;
  asked_for asked;
};

/// What was written.
struct token_tally {
  std::uint64_t texts = 0;
  std::uint64_t skipped = 0;
  std::uint64_t tokens = 0;
};

/// How texts become tokens.
struct text_rule {
  const stages::text_encoder& encoder;
  bool around = true;
  std::optional<std::uint32_t> eos;
  dtype type = dtype::u16;
  bool skip = false;
};

std::string index_path(const std::string& bin) { return std::filesystem::path(bin).replace_extension(".idx").string(); }

std::optional<std::uint32_t> eos_of(const tokens_arguments& arguments, const tokenizer& words) {
  if (arguments.no_eos) return std::nullopt;
  if (!arguments.eos.empty()) {
    const std::optional<std::int32_t> id = words.find(arguments.eos);
    if (!id) throw error(errc::usage, str_cat("--eos: ", arguments.tokenizer, " has no token '", arguments.eos, "'"));
    return static_cast<std::uint32_t>(*id);
  }
  if (words.get()->eos) return static_cast<std::uint32_t>(*words.get()->eos);
  throw error(errc::usage, str_cat(arguments.tokenizer,
                                   " does not say which token ends a text; name it with --eos, or give --no-eos"));
}

dtype type_of(const tokens_arguments& arguments, const tokenizer& words) {
  constexpr std::int32_t u16_end = 1 << 16;
  const dtype least = words.vocabulary() <= u16_end ? dtype::u16 : dtype::u32;
  const dtype type = arguments.type.value_or(least);
  if (type == dtype::u16 && least != dtype::u16) {
    throw error(errc::usage, str_cat("--token-type u16: ", arguments.tokenizer, " has ", words.vocabulary(),
                                     " tokens, which need 32 bits"));
  }
  return type;
}

void add_tokens(const std::vector<std::uint32_t>& ids, std::size_t first, dtype type, std::vector<std::byte>& to) {
  const std::size_t begin = to.size();
  to.resize(begin + (ids.size() - first) * size_bytes(type));
  std::byte* at = to.data() + begin;
  for (std::size_t i = first; i < ids.size(); ++i, at += size_bytes(type)) {
    const auto narrow = static_cast<std::uint16_t>(ids[i]);
    type == dtype::u16 ? std::memcpy(at, &narrow, sizeof narrow) : std::memcpy(at, &ids[i], sizeof ids[i]);
  }
}

/// Texts that follow one another, as tokens.
struct token_span {
  std::vector<std::byte> bytes;
  std::vector<std::int32_t> lengths;  // of the texts
  std::uint64_t skipped = 0;
};

/// One thread's.
class span_maker {
 public:
  span_maker(const text_field& of, const text_rule& rule, const datasets::joint_limits& limits)
      : of_(of), rule_(rule), reads_(*of.samples.model(), limits), scratch_(rule.encoder) {}

  void make(std::uint64_t first, std::uint64_t end, measuring_progress& so_far, token_span& to) {
    while (first < end) {
      for (const datasets::joint_reads::one& each : reads_.read_from(first, end)) {
        add(each, to);
        ++first;
        ++so_far.measured;
      }
    }
    reads_.release();
  }

 private:
  void add(const datasets::joint_reads::one& text, token_span& to) {
    if (const std::optional<std::string> wrong = encode(text)) {
      if (!rule_.skip) {
        // What reading says names the sample itself.
        const std::string name = str_cat(of_.samples.name(text.sample), ": ");
        throw error(errc::corrupt,
                    str_cat(wrong->starts_with(name) ? "" : name, *wrong, "; --skip-corrupt leaves it out"));
      }
      ++to.skipped;
      return;
    }
    if (rule_.eos) ids_.push_back(*rule_.eos);
    if (ids_.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
      throw error(errc::unsupported, str_cat(of_.samples.name(text.sample), ": has more than 2^31 tokens"));
    }
    add_tokens(ids_, 0, rule_.type, to.bytes);
    to.lengths.push_back(static_cast<std::int32_t>(ids_.size()));
  }

  std::optional<std::string> encode(const datasets::joint_reads::one& text) {
    ids_.clear();
    if (text.parts.empty()) return str_cat("has no field '", of_.name, "', or is damaged");
    if (const std::optional<std::uint64_t> bytes = reads_.bytes_over(text, 0)) {
      return str_cat("takes ", bytes_text(*bytes), " of memory; raise --host-bytes-max");
    }
    try {
      const std::span<const std::byte> bytes = reads_.field_of(text, 0);
      return rule_.encoder.encode({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, {.around = rule_.around},
                                  scratch_, ids_);
    } catch (const datasets::read_failure& why) {
      if (!rule_.skip || why.whose() == io::fault::environment) throw;
      return why.what();
    } catch (const error& why) {
      if (why.code() != errc::corrupt && why.code() != errc::limit) throw;
      return why.what();
    }
  }

  const text_field& of_;
  const text_rule& rule_;
  datasets::joint_reads reads_;
  stages::encode_scratch scratch_;
  std::vector<std::uint32_t> ids_;
};

/// Lets threads write what they have made in the source's order.
class turns {
 public:
  /// False where another thread has failed.
  bool wait_for(std::size_t span) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return next_ == span || failed_; });
    return !failed_;
  }
  void end() {
    change([&] { ++next_; });
  }
  void fail() {
    change([&] { failed_ = true; });
  }

 private:
  template <class Change>
  void change(const Change& how) {
    {
      const std::lock_guard lock(mutex_);
      how();
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t next_ = 0;
  bool failed_ = false;
};

/// The samples of a rank: neighbours, as many as others have or one more.
struct sample_range {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

sample_range share_of(std::uint64_t samples, const world& here) {
  const std::uint64_t each = samples / here.size;
  const std::uint64_t more = samples % here.size;
  const auto begin = [&](std::uint64_t rank) { return rank * each + std::min(rank, more); };
  return {.first = begin(here.rank), .end = begin(here.rank + std::uint64_t{1})};
}

token_tally write_tokens(const text_field& of, const text_rule& rule, sample_range share, std::uint64_t host_bytes_max,
                         output_file& out, std::vector<std::int32_t>* lengths, const std::stop_token& stop,
                         measuring_progress& so_far) {
  constexpr std::uint64_t samples_at_once = 128;
  const std::uint32_t threads = working_cores();
  datasets::byte_gate gate(host_bytes_max / 2);
  datasets::joint_limits limits = datasets::limits_within(host_bytes_max, threads, {&of.number, 1}, gate);
  // The tokens are held beside the texts.
  limits.together_bytes = std::min(limits.together_bytes, host_bytes_max / (16 * std::uint64_t{threads}));
  const std::uint64_t samples = share.end - share.first;
  so_far.pictures = samples;
  turns order;
  token_tally all;
  const auto make = [&] { return std::make_unique<span_maker>(of, rule, limits); };
  const std::uint64_t spans = (samples + samples_at_once - 1) / samples_at_once;
  datasets::for_each_parallel_with(spans, threads, make, [&](std::size_t span, span_maker& own) {
    try {
      token_span made;
      const std::uint64_t first = share.first + span * samples_at_once;
      own.make(first, std::min(share.end, first + samples_at_once), so_far, made);
      if (stop.stop_requested()) throw error(errc::cancelled, "stopped");
      if (!order.wait_for(span)) return;
      out.write(made.bytes, stop);
      all.texts += made.lengths.size();
      all.skipped += made.skipped;
      all.tokens += made.bytes.size() / size_bytes(rule.type);
      if (lengths != nullptr) lengths->insert(lengths->end(), made.lengths.begin(), made.lengths.end());
      order.end();
    } catch (...) {
      order.fail();
      throw;
    }
  });
  return all;
}

constexpr std::string_view index_magic("MMIDIDX\0\0", 9);

// As Megatron-LM's IndexedDataset has it: each text is a sequence and a document.
void write_index(const std::vector<std::int32_t>& lengths, dtype type, output_file& to, const std::stop_token& stop) {
  std::vector<std::byte> bytes;
  const auto add = [&](const auto& number) {
    const auto* const at = reinterpret_cast<const std::byte*>(&number);
    bytes.insert(bytes.end(), at, at + sizeof number);
    if (bytes.size() < (std::size_t{1} << 20)) return;
    to.write(bytes, stop);
    bytes.clear();
  };
  for (const char each : index_magic) add(each);
  add(std::uint64_t{1});                                       // version
  add(static_cast<std::uint8_t>(type == dtype::u16 ? 8 : 4));  // uint16 or int32, by DType of megatron/core/datasets
  add(std::uint64_t{lengths.size()});
  add(std::uint64_t{lengths.size() + 1});
  for (const std::int32_t each : lengths) add(each);
  std::int64_t place = 0;
  for (const std::int32_t each : lengths) {
    add(place);
    place += std::int64_t{each} * static_cast<std::int64_t>(size_bytes(type));
  }
  for (std::int64_t document = 0; document <= static_cast<std::int64_t>(lengths.size()); ++document) add(document);
  to.write(bytes, stop);
}

bool is_megatron_index(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char start[index_magic.size()] = {};
  file.read(start, sizeof start);
  return file && std::string_view(start, sizeof start) == index_magic;
}

// An empty file is nothing, as `touch` makes it.
bool is_there(const std::string& path) { return look_at_start(path, "") != file_start::nothing; }

// An index beside the file would be taken for its own.
void check_out(const std::string& out, token_form to) {
  if (std::filesystem::path(out).extension() != ".bin") {
    throw error(errc::usage, str_cat("'", out, "' is where tokens go; give a name that ends in .bin"));
  }
  const std::string index = index_path(out);
  // What a run leaves that is killed between the two files is nobody's: it is written anew.
  const bool is_left = to == token_form::megatron && !is_there(out) && is_megatron_index(index);
  if (is_there(index) && !is_left) {
    throw error(errc::usage, str_cat(index, " is there, an index of other tokens; remove it, or give another name"));
  }
  if (to == token_form::megatron && is_there(out)) {
    throw error(errc::usage, str_cat(out, " is there; remove it, or give another name"));
  }
  output_file::check(out, output_kind::tokens);
}

std::string progress(const terminal& screen, std::size_t columns, const measuring_progress& so_far) {
  const std::uint64_t all = so_far.pictures;
  if (all == 0) return screen.dim("  looking through the samples");
  const std::uint64_t done = so_far.measured;
  return bar_line(screen, columns, static_cast<double>(done) / static_cast<double>(all),
                  str_cat("  texts: ", count_text(done), " of ", count_text(all)));
}

int make_tokens(const tokens_arguments& arguments, interruption& stop) {
  if (arguments.paths.size() < 2) throw error(errc::usage, "give a SOURCE, and OUT.bin behind it");
  const found_world here = world_of(arguments.ranks);
  const std::string out = name_for_rank("OUT", arguments.paths.back(), here.world);
  const std::vector<std::string> sources(arguments.paths.begin(), arguments.paths.end() - 1);
  check_out(out, arguments.to);
  const tokenizer words = as_named([&] { return tokenizer::open(arguments.tokenizer); });
  const text_rule rule{.encoder = words.get()->encoder,
                       .around = !arguments.no_special,
                       .eos = eos_of(arguments, words),
                       .type = type_of(arguments, words),
                       .skip = arguments.skip};
  const auto leave = [&] { complain("tokens", str_cat("stopped by ", stop.name())); };
  const dataset opened =
      open_sources(sources, stop, leave, [](dtype) { return std::string("here they are tokens already"); },
                   {.opening = arguments.opening});
  const written_file written[] = {{"OUT", &out}};
  check_writes_no_sample(opened, written);
  tell_notes("tokens", opened);
  const text_field texts = text_field_of(opened, arguments.field);
  const sample_range share = share_of(opened.size(), here.world);

  const clock::time_point began = clock::now();
  token_tally all;
  try {
    output_file file(out, output_kind::tokens, output_file::appears::when_closed);
    std::vector<std::int32_t> lengths;
    const bool has_index = arguments.to == token_form::megatron;
    {
      measuring_progress so_far;
      const status_line line(
          [&](const terminal& screen, std::size_t columns) { return progress(screen, columns, so_far); });
      all = write_tokens(texts, rule, share, arguments.host_bytes_max, file, has_index ? &lengths : nullptr,
                         stop.token(), so_far);
    }
    if (all.tokens == 0) throw error(errc::unsupported, "the texts have no tokens: nothing was written");
    if (has_index) {
      output_file index(index_path(out), output_kind::token_index, output_file::appears::when_closed);
      write_index(lengths, rule.type, index, stop.token());
      index.close();
    }
    // Last: without it nobody takes what is there for whole.
    file.close();
  } catch (const error& why) {
    if (why.code() != errc::cancelled) throw;
    leave();
    return stop.exit_code();
  }
  const std::chrono::duration<double> took = clock::now() - began;
  if (arguments.json) {
    asked_for asked = arguments.asked;
    asked.sources.pop_back();  // OUT
    nlohmann::ordered_json report = {{"out", out},           {"texts", all.texts},      {"skipped", all.skipped},
                                     {"tokens", all.tokens}, {"type", name(rule.type)}, {"seconds", took.count()}};
    add_ranks(report, here);
    print(report_text(std::move(report), asked));
  } else {
    print(str_cat(counted(all.tokens, "token", "tokens"), " of ", counted(all.texts, "text", "texts"), " in ", out,
                  " (", name(rule.type), "), ", seconds_text(took.count()), "\n"));
  }
  if (all.skipped != 0) complain("tokens", str_cat(counted(all.skipped, "text was", "texts were"), " left out"));
  return exit_done;
}

}  // namespace

void add_tokens(CLI::App& leat, chosen_command& chosen) {
  auto arguments = std::make_shared<tokens_arguments>();  // Lives as long as the parser's callbacks do.
  CLI::App& app = *leat.add_subcommand("tokens", "write the texts of a source as a file of tokens");
  app.add_option("SOURCE", arguments->paths,
                 "OUT.bin gets the tokens of all texts, one behind the other; a run that is stopped leaves none, and "
                 "no file is replaced. Each rank "
                 "writes its share of the texts to its own: OUT.%r.bin")
      ->required()
      ->option_text("SOURCE... OUT.bin")
      ->type_name("");
  add_text(app, "--tokenizer", arguments->tokenizer, "FILE",
           "tokenizer.json, tokenizer.model, or cl100k_base.tiktoken and the like")
      ->required();
  add_text(app, "--field", arguments->field, "NAME", "which holds the texts (the only one, or text)");
  CLI::Option* const eos = add_text(app, "--eos", arguments->eos, "TOKEN", "behind each text (the tokenizer's own)");
  app.add_flag("--no-eos", arguments->no_eos, "nothing behind each text")->excludes(eos);
  app.add_flag("--no-special", arguments->no_special, "without the tokens that the tokenizer puts around each text");
  add_choice(app, "--to", arguments->to, {{"plain", token_form::plain}, {"megatron", token_form::megatron}},
             "plain: as nanoGPT's, without a header; megatron: with OUT.idx, each text a document (plain)");
  add_choice(app, "--token-type", arguments->type,
             {{"u16", std::optional(dtype::u16)}, {"u32", std::optional(dtype::u32)}},
             "of --to plain and megatron, whose u32 is int32 (u16, where the vocabulary fits)");
  app.add_flag("--skip-corrupt", arguments->skip,
               "leave out texts that are damaged or missing; else they are an error");
  add_opening_options(app, arguments->opening);
  add_rank_options(app, arguments->ranks);
  add_bytes(app, "--host-bytes-max", arguments->host_bytes_max, "memory for texts (512MiB)");
  app.add_flag("--json", arguments->json, "what was written, as one JSON object");
  app.footer(
      "  leat tokens 'corpus/*.jsonl' --tokenizer tokenizer.json train.bin\n"
      "  leat tokens 'corpus/*.parquet' --tokenizer tokenizer.json --to megatron corpus.bin\n"
      "  mpirun -n 8 leat tokens 'corpus/*.parquet' --tokenizer tokenizer.json corpus.%r.bin");
  app.callback([arguments, &app, &chosen] {
    arguments->asked = asked_of(app);
    chosen = [arguments](interruption& stop) { return make_tokens(*arguments, stop); };
  });
}

}  // namespace leat::tools
