#include "tools/page_parts.hpp"

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "tools/sheet.hpp"

#include <absl/strings/escaping.h>

namespace leat::tools {
namespace {

constexpr std::string_view common_style = R"(
:root { color-scheme: light dark; --paper: #f6f5f2; --card: #fff; --ink: #1f2328; --faint: #64696e; --line: #e3e1dc; --chip: #f0eee9;
        --first: #d9480f; --other: #1971c2; --good: #2b8a3e; --bad: #c92a2a }
@media (prefers-color-scheme: dark) {
  :root { --paper: #16181b; --card: #1f2226; --ink: #e6e7e8; --faint: #a3a9b0; --line: #3a3f45; --chip: #2a2e33; --first: #ff8a4c;
          --other: #4dabf7; --good: #51cf66; --bad: #ff8787 } }
* { box-sizing: border-box }
body { margin: 0; padding: 28px clamp(14px, 3vw, 44px) 60px; background: var(--paper); color: var(--ink);
       font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif }
h1 { font-size: 21px; margin: 0 0 4px; overflow-wrap: anywhere }
h2 { font-size: 15px; margin: 0 0 10px }
.facts { color: var(--faint); margin: 0 0 20px; overflow-wrap: anywhere }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 16px }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px 16px; min-width: 0 }
.plot { display: grid; grid-template-columns: auto 1fr; column-gap: 8px; color: var(--faint); font-size: 12px }
.plot .up { display: flex; flex-direction: column; justify-content: space-between; text-align: right; height: 150px }
.plot svg { width: 100%; height: 150px; display: block; border-bottom: 1px solid var(--line); border-left: 1px solid var(--line) }
.plot .along { grid-column: 2; display: flex; justify-content: space-between }
.key { color: var(--faint); font-size: 12px; margin: 8px 0 0; display: flex; flex-wrap: wrap; gap: 4px 14px }
.key i { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 5px; background: var(--first) }
.key i.second { background: var(--other) }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: 3px 10px 3px 0; vertical-align: top; overflow-wrap: anywhere; font-weight: 400 }
th { color: var(--faint) } td.n { font-variant-numeric: tabular-nums }
.broken { color: var(--bad); font-weight: 600 } .kept { color: var(--good) }
.bar { height: 9px; background: var(--first); border-radius: 3px; min-width: 1px }
)";

// W3C Content Security Policy 3: nothing is fetched, and no script runs but the one of this hash.
std::string what_may_run(std::string_view script) {
  std::string rules = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";
  if (script.empty()) return rules;
  sha256_hasher hash;
  hash.add(script);
  const sha256 sum = hash.finish();
  str_append(rules, "; script-src 'sha256-",
             absl::Base64Escape(absl::string_view(reinterpret_cast<const char*>(sum.data()), sum.size())), "'");
  return rules;
}

}  // namespace

std::string page_head(std::string_view title, std::string_view style, std::string_view script) {
  const std::string shown = page_words(title);
  return str_cat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"/>\n<meta http-equiv=\"Content-Security-Policy\" content=\"",
      what_may_run(script), "\"/>\n<title>", shown, "</title>\n<style>", common_style, style,
      "</style>\n</head>\n<body>\n<h1>", shown, "</h1>\n");
}

std::string page_end(std::string_view script) {
  return str_cat(script.empty() ? "" : "<script>", script, script.empty() ? "" : "</script>\n", "</body>\n</html>\n");
}

std::string page_words(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return html_text(text);
  std::size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return html_text(str_cat(text.substr(0, end), " ..."));
}

std::string data_address(std::string_view media_type, std::span<const std::byte> bytes) {
  const absl::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return str_cat("data:", media_type, ";base64,", absl::Base64Escape(content));
}

}  // namespace leat::tools
