// leat receipt: what the receipt of a run says of samples, with proofs that are checked without it.
#include "base/hex.hpp"
#include "base/parse_json.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "io/files/read_error.hpp"
#include "stages/state/receipt_tree.hpp"
#include "tools/arguments.hpp"
#include "tools/human.hpp"
#include "tools/output.hpp"
#include "tools/run_record.hpp"
#include "tools/sources.hpp"
#include "tools/subcommand.hpp"
#include "tools/terminal.hpp"
#include "tools/whole_file.hpp"

#include <leat/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

using json = nlohmann::ordered_json;

constexpr std::uint32_t proof_version = 1;
constexpr std::uint64_t names_bytes_max = std::uint64_t{1} << 30U;
constexpr std::uint64_t proof_bytes_max = std::uint64_t{1} << 30U;
// About 4 KB of text each, and 20 KB of memory: as many as --verify can read.
constexpr std::size_t proof_names_max = 20'000;

struct receipt_arguments {
  std::vector<std::string> files;  // RUN.receipt NAME...
  std::string names;
  std::string proof;
  std::string verify;
  std::string root;
  bool json = false;
  asked_for asked;
};

/// What is known of one name.
struct looked_up {
  std::string name;
  std::vector<stages::receipt_row> rows;
  stages::receipt_proof proof = {};
};

// The beginning of the digest of each row.
std::vector<std::string> digests_of(const std::vector<stages::receipt_row>& rows) {
  std::vector<std::string> all;
  for (const stages::receipt_row& each : rows) {
    all.push_back(to_hex(std::span(each.bytes).subspan(stages::receipt_row::key_bytes)));
  }
  return all;
}

json run_of(const stages::receipt_statement& of) {
  return {{"content_version", of.of.content},
          {"description", of.of.described.hex()},
          {"seed", of.of.seed},
          {"epochs", of.of.epochs},
          {"rank", of.of.rank},
          {"world", of.of.world},
          {"begin_epoch", of.of.begin_epoch},
          {"begin_batch", of.of.begin_batch},
          {"rows", of.rows},
          {"ended", of.ended}};
}

bool is_utf8(std::string_view text) { return !first_invalid_utf8(std::as_bytes(std::span(text))); }

// --- proofs ---------------------------------------------------------------------------------------------------------

json as_json(const looked_up& each) {
  json proof;
  if (is_utf8(each.name)) {
    proof["name"] = each.name;
  } else {
    proof["name_hex"] = to_hex({reinterpret_cast<const std::uint8_t*>(each.name.data()), each.name.size()});
  }
  proof["times"] = each.rows.size();
  proof["first_block"] = each.proof.first_block;
  json& rows = proof["rows"] = json::array();
  for (const stages::receipt_row& row : each.proof.rows) rows.push_back(to_hex(row.bytes));
  json& siblings = proof["siblings"] = json::array();
  for (const sha256& hash : each.proof.siblings) siblings.push_back(to_hex(hash));
  return proof;
}

void write_proofs(const std::string& path, const stages::sealed_receipt& sealed, const std::vector<looked_up>& all) {
  json whole{{"leat_receipt_proof", proof_version}, {"root", to_hex(sealed.root)}, {"run", run_of(sealed.of)}};
  json& names = whole["names"] = json::array();
  for (const looked_up& each : all) names.push_back(as_json(each));
  output_file file(path, output_kind::proof, output_file::appears::when_closed);
  file.write(json_text(whole, 1) + "\n");
  file.close();
}

struct read_proofs {
  stages::receipt_statement of;
  sha256 root{};
  std::vector<looked_up> names;
  std::vector<std::uint64_t> times;  // as it says
};

read_proofs proofs_in(const std::string& path) {
  int failure = 0;
  const std::string text = whole_file(path, failure, proof_bytes_max);
  if (failure != 0) throw io::explain_open(failure, path);
  const auto refuse = [&path](std::string_view why) {
    throw error(errc::format, str_cat(path, ": ", why, "; give a file that leat receipt --proof has written"));
  };
  const auto bytes = [&](const json& from, std::span<std::uint8_t> into) {
    if (!from.is_string() || !from_hex(from.get_ref<const std::string&>(), into)) {
      refuse("a hash or a row is no hexadecimal number of its length");
    }
  };
  const auto number = [&](const json& from, const char* key) {
    const json& value = from.at(key);
    if (!value.is_number_unsigned()) refuse(str_cat(key, " is no number"));
    return value.get<std::uint64_t>();
  };
  const auto number_of_32_bits = [&](const json& from, const char* key) {
    const std::uint64_t value = number(from, key);
    if (value > 0xFFFFFFFFU) refuse(str_cat(key, " is too large"));
    return static_cast<std::uint32_t>(value);
  };
  read_proofs read;
  try {
    const json whole = parse_json_or_discard<json>(text);
    if (!whole.is_object() || !whole.contains("leat_receipt_proof")) refuse("is no proof");
    if (const std::uint64_t version = number(whole, "leat_receipt_proof"); version != proof_version) {
      throw error(errc::unsupported, str_cat(path, ": version ", version, " of a proof; this leat reads ",
                                             proof_version, ": use the leat that has written it, or a newer one"));
    }
    const json& run = whole.at("run");
    bytes(whole.at("root"), read.root);
    bytes(run.at("description"), read.of.of.described.bytes);
    read.of.of.content = number_of_32_bits(run, "content_version");
    read.of.of.seed = number(run, "seed");
    read.of.of.epochs = number_of_32_bits(run, "epochs");
    read.of.of.rank = number_of_32_bits(run, "rank");
    read.of.of.world = number_of_32_bits(run, "world");
    read.of.of.begin_epoch = number_of_32_bits(run, "begin_epoch");
    read.of.of.begin_batch = number(run, "begin_batch");
    read.of.rows = number(run, "rows");
    read.of.ended = run.at("ended").get<bool>();
    for (const json& each : whole.at("names")) {
      looked_up& one = read.names.emplace_back();
      if (each.contains("name_hex")) {
        const auto& hex = each.at("name_hex").get_ref<const std::string&>();
        one.name.resize(hex.size() / 2);
        bytes(each.at("name_hex"), {reinterpret_cast<std::uint8_t*>(one.name.data()), one.name.size()});
      } else {
        one.name = each.at("name").get<std::string>();
      }
      read.times.push_back(number(each, "times"));
      one.proof.first_block = number(each, "first_block");
      for (const json& row : each.at("rows")) bytes(row, one.proof.rows.emplace_back().bytes);
      for (const json& hash : each.at("siblings")) bytes(hash, one.proof.siblings.emplace_back());
    }
  } catch (const json::exception&) {
    refuse("something that a proof has is missing, or is no such value");
  }
  if (read.names.empty()) refuse("it proves nothing of any name");
  return read;
}

// --- what is said ---------------------------------------------------------------------------------------------------

std::string about(const stages::receipt_statement& of) {
  std::string text =
      str_cat(counted(of.rows, "row", "rows"), " of rank ", of.of.rank, " of ", of.of.world, ", seed ", of.of.seed);
  if (of.of.begin_epoch != 0 || of.of.begin_batch != 0) {
    str_append(text, ", from batch ", of.of.begin_batch, " of epoch ", of.of.begin_epoch, " on");
  }
  str_append(text, of.ended ? "; the run has ended, after " : "; the run has not ended: it has ",
             of.of.epochs == 0 ? std::string("no last epoch") : counted(of.of.epochs, "epoch", "epochs"));
  return text;
}

void show(const stages::receipt_statement& of, const sha256& root, const std::vector<looked_up>& all,
          const receipt_arguments& arguments, std::string_view verified) {
  if (arguments.json) {
    json names = json::array();
    for (const looked_up& each : all) {
      names.push_back({{"name", each.name},
                       {"in", !each.rows.empty()},
                       {"times", each.rows.size()},
                       {"digests", digests_of(each.rows)}});
    }
    print(report_text(
        {{"receipt", run_of(of)}, {"root", to_hex(root)}, {"verified", !verified.empty()}, {"names", std::move(names)}},
        arguments.asked));
    return;
  }
  const terminal screen = terminal::of(stdout);
  std::string text = str_cat("\n  ", about(of), "\n  root ", screen.bold(to_hex(root)), verified, "\n");
  if (!all.empty()) text += "\n";
  constexpr std::size_t digests_shown = 4;
  for (const looked_up& each : all) {
    const std::string times =
        each.rows.empty() ? "not in" : str_cat("in, ", counted(each.rows.size(), "time", "times"));
    str_append(text, "  ", to_left(times, 16), one_line(each.name));
    std::vector<std::string> digests = digests_of(each.rows);
    const bool has_more = digests.size() > digests_shown;
    digests.resize(std::min(digests.size(), digests_shown));
    if (!digests.empty()) {
      str_append(text, "  ", screen.dim(str_cat("digests ", joined(digests, ", "), has_more ? ", ..." : "")));
    }
    text += "\n";
  }
  if (all.size() > 1) {
    const auto in = static_cast<std::uint64_t>(
        std::count_if(all.begin(), all.end(), [](const looked_up& each) { return !each.rows.empty(); }));
    str_append(text, "\n  ", count_text(in), " of ", counted(all.size(), "name", "names"), in == 1 ? " is" : " are",
               " in\n");
  }
  const bool misses = std::any_of(all.begin(), all.end(), [](const looked_up& each) { return each.rows.empty(); });
  if (misses) {
    text +=
        "\n  A name that no sample has is not in, either: leat replay shows how the samples of a source are named\n";
  }
  print(text + "\n");
}

int verify(const receipt_arguments& arguments) {
  if (!arguments.files.empty() || !arguments.names.empty() || !arguments.proof.empty()) {
    throw error(errc::usage, "--verify checks a proof without its receipt; leave out the receipt, names and --proof");
  }
  sha256 root{};
  if (!from_hex(arguments.root, root)) {
    throw error(errc::usage, str_cat("--root '", one_line(arguments.root),
                                     "': give the 64 hexadecimal digits that leat receipt has printed for the run"));
  }
  read_proofs read = proofs_in(arguments.verify);
  const auto refuse = [&](std::string_view name, std::string_view why) {
    throw error(errc::corrupt, str_cat(arguments.verify, ": '", one_line(name), "': ", why));
  };
  for (std::size_t i = 0; i < read.names.size(); ++i) {
    looked_up& each = read.names[i];
    stages::proved_rows proved;
    try {
      proved = stages::prove(read.of, each.name, each.proof);
    } catch (const error& failure) {
      refuse(each.name, failure.what());
    }
    if (proved.root != root) {
      refuse(each.name, str_cat("the proof is of root ", to_hex(proved.root),
                                ", not of --root: it was changed, or is of another run"));
    }
    if (proved.rows.size() != read.times[i]) {
      refuse(each.name,
             str_cat("it says ", counted(read.times[i], "time", "times"), ", and its rows prove ", proved.rows.size()));
    }
    each.rows = std::move(proved.rows);
  }
  show(read.of, root, read.names, arguments, ", which the proof has");
  return exit_done;
}

// Those of the command line, and those of --names: a line each, of whatever bytes.
std::vector<std::string> names_of(const receipt_arguments& arguments) {
  std::vector<std::string> names(arguments.files.begin() + 1, arguments.files.end());
  if (arguments.names.empty()) return names;
  int failure = 0;
  const std::string text = whole_file(arguments.names, failure, names_bytes_max);
  if (failure != 0) throw io::explain_open(failure, arguments.names);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (end != at) names.push_back(text.substr(at, end - at));
    if (end != at && text[end - 1] == '\r') {
      throw error(errc::usage, str_cat(arguments.names, ": the line '", one_line(names.back()),
                                       "' ends with a carriage return, which would be part of the name; end lines "
                                       "with a line feed alone"));
    }
    at = end + 1;
  }
  return names;
}

int receipt(const receipt_arguments& arguments, interruption& stop) {
  if (arguments.verify.empty() != arguments.root.empty()) {
    throw error(errc::usage, "--verify PROOF and --root HEX belong together; give both");
  }
  if (!arguments.verify.empty()) return verify(arguments);
  if (arguments.files.empty()) {
    throw error(errc::usage, "RUN.receipt is needed; as in `leat receipt run.receipt daisy/17.jpg`");
  }
  const std::vector<std::string> names = as_named([&] { return names_of(arguments); });
  const bool proves = !arguments.proof.empty();
  if (proves && names.empty()) {
    throw error(errc::usage, "--proof writes what proves something of each NAME; give at least one NAME");
  }
  if (proves && names.size() > proof_names_max) {
    throw error(errc::usage, str_cat("--proof takes at most ", count_text(proof_names_max), " names, and was given ",
                                     count_text(names.size()), "; write several proofs, of some of the names each"));
  }
  if (proves) output_file::check(arguments.proof, output_kind::proof);
  const auto leave = [&] { complain("receipt", str_cat("stopped by ", stop.name())); };
  const leaving_at_once leaving(stop, leave);
  stages::sealed_receipt sealed = as_named([&] {
    return stages::seal_receipt(arguments.files.front(), names,
                                proves ? stages::receipt_proofs::of_each_name : stages::receipt_proofs::none);
  });
  std::vector<looked_up> all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    looked_up& each = all.emplace_back(looked_up{.name = names[i], .rows = std::move(sealed.rows[i])});
    if (proves) each.proof = std::move(sealed.proofs[i]);
  }
  if (proves) write_proofs(arguments.proof, sealed, all);
  show(sealed.of, sealed.root, all, arguments, "");
  return exit_done;
}

}  // namespace

void add_receipt(CLI::App& leat, chosen_command& chosen) {
  auto arguments = std::make_shared<receipt_arguments>();  // Lives as long as the parser's callbacks do.
  CLI::App& app = *leat.add_subcommand("receipt", "prove that a sample was, or was not, in a run");
  app.add_option("RUN", arguments->files, "what --receipts of leat epoch has written, and names of samples")
      ->option_text("RUN.receipt NAME...");
  add_text(app, "--names", arguments->names, "FILE", "more names, one a line");
  add_text(app, "--proof", arguments->proof, "FILE", "write what proves it of each NAME");
  add_text(app, "--verify", arguments->verify, "PROOF", "check such a FILE, without the receipt");
  add_text(app, "--root", arguments->root, "HEX", "with --verify: the root that was printed when the run had ended");
  app.add_flag("--json", arguments->json, "the result as one JSON object");
  app.footer(
      "  leat epoch photos --receipts run.receipt\n"
      "  leat receipt run.receipt                # its root: keep it, or publish it\n"
      "  leat receipt run.receipt daisy/17.jpg rose/3.jpg --proof two.json   # of a shard: train-000.tar/daisy/17\n"
      "  leat receipt --verify two.json --root 5f0c...");
  app.callback([arguments, &app, &chosen] {
    arguments->asked = asked_of(app);
    chosen = [arguments](interruption& stop) { return receipt(*arguments, stop); };
  });
}

}  // namespace leat::tools
