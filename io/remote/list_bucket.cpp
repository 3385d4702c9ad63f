#include "io/remote/list_bucket.hpp"

#include "base/hash_map.hpp"
#include "base/mutex.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "io/remote/http_client.hpp"

#include <leat/error.hpp>

#include <absl/base/thread_annotations.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string_view>
#include <utility>

namespace leat::io {
namespace {

// As many answers of 16 MiB may be held at once.
constexpr std::size_t parts_at_once = 32;
// Each costs a request more than its pages do in a row, and the longest of them is waited for at the end.
constexpr std::size_t groups_at_most = 4 * parts_at_once;
// A listing of folders that goes on behind these is given up: so many requests were in vain, of a listing with more pages than that.
constexpr std::uint64_t folder_pages_max = 32;
// A listing of so many pages that have hardly a name each is not followed: it may have no end.
constexpr std::uint64_t thin_pages_max = 256;
constexpr std::uint64_t names_a_page_min = 2;

// "b/" of "a/b/c", after "a/"; "" of an object that lies in no folder below.
std::string_view folder_of(std::string_view key, std::size_t prefix_bytes) {
  const std::size_t slash = key.find('/', prefix_bytes);
  return slash == std::string_view::npos ? std::string_view() : key.substr(0, slash + 1);
}

// The end of the character of UTF-8 that begins at `at`.
std::size_t character_end(std::string_view text, std::size_t at) {
  if (at < text.size()) ++at;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) ++at;
  return at;
}

// Names in such letters come back as they are asked for, whichever way a store encodes them.
bool is_plain(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
           letter == '-' || letter == '_' || letter == '.' || letter == '/';
  });
}

bool by_key(const s3_listed& a, const s3_listed& b) { return a.key < b.key; }

folder_group group_of(std::span<const std::string> folders, std::size_t begin, std::size_t end) {
  // They are sorted: what the first and the last have in common all have.
  const std::string& first = folders[begin];
  const std::string& last = folders[end - 1];
  std::size_t common = 0;
  while (common < first.size()) {
    const std::size_t next = character_end(first, common);
    if (last.compare(common, character_end(last, common) - common, first, common, next - common) != 0) break;
    common = next;
  }
  return {first.substr(0, common), begin, end};
}

// Those that differ in the character behind what the group has in common.
std::vector<folder_group> divided(std::span<const std::string> folders, const folder_group& group) {
  std::vector<folder_group> parts;
  const std::size_t at = group.prefix.size();
  for (std::size_t begin = group.begin; begin < group.end;) {
    const std::string_view first = std::string_view(folders[begin]).substr(at);
    const std::string_view letter = first.substr(0, character_end(first, 0));
    std::size_t end = begin + 1;
    while (end < group.end && std::string_view(folders[end]).substr(at).starts_with(letter)) ++end;
    parts.push_back(group_of(folders, begin, end));
    begin = end;
  }
  return parts;
}

// Of one call of list_bucket(). A part of the keys, those that begin with its prefix, is listed page by page; where its folders are known it
// may be divided into parts. The first part, the whole, keeps what it has read: it goes on by itself where the others have come to nothing.
class bucket_listing {
 public:
  bucket_listing(const std::string& bucket, const std::string& prefix, const s3_access& store,
                 const remote_options& options, std::uint64_t pages_max)
      : bucket_(address_of({bucket, ""}, store)),
        shown_(redacted(str_cat("s3://", bucket, "/", prefix))),
        pages_max_(pages_max),
        client_(options, {}, &store) {
    parts_.push_back(std::make_unique<part>());
    parts_.front()->prefix = prefix;
  }
  bucket_listing(const bucket_listing&) = delete;
  bucket_listing& operator=(const bucket_listing&) = delete;
  ~bucket_listing() { cancel_all(); }

  std::vector<s3_listed> run() {
    waiting_.push_back(parts_.front().get());
    for (;;) {
      while (!waiting_.empty() && asked_.size() < parts_at_once) {
        ask(*waiting_.front());
        waiting_.pop_front();
      }
      if (asked_.empty()) {
        std::vector<s3_listed> all = collected();
        const auto twice = std::adjacent_find(all.begin(), all.end(),
                                              [](const s3_listed& a, const s3_listed& b) { return a.key == b.key; });
        if (twice == all.end() && has_all_folders(all)) return all;
        if (parts_.size() == 1) refuse(str_cat("has '", shown_key(twice->key), "' twice"));
        go_on_alone();
        continue;
      }
      take(*next_answer());
      if (pages_ >= pages_max_) return collected();
    }
  }

 private:
  struct part {
    std::string prefix;
    std::vector<s3_listed> objects;
    std::string token;                  // of the page behind them
    hash_set<std::size_t> tokens = {};  // hashes of all that there were
    std::uint64_t pages = 0;
    std::uint64_t names_read = 0;
    bool is_of_folders = false;  // names that begin so and lie in no folder below are another part's
    bool may_divide = true;
    bool is_divided = false;  // what counts is `beside`, and the other parts have the rest

    bool asks_folders = false;
    bool has_folders = false;
    std::vector<std::string> folders = {};
    std::vector<s3_listed> beside = {};  // in none of them
    std::string folders_token = {};
    std::uint64_t folder_pages = 0;
    std::size_t folders_in_page = 0;  // of the names that were read last
  };
  struct question final : fetch {
    bucket_listing* all = nullptr;
    part* of = nullptr;
    address target;
  };

  void ask(part& of) {
    auto next = std::make_shared<question>();
    const std::string& token = of.asks_folders ? of.folders_token : of.token;
    next->all = this;
    next->of = &of;
    next->target = bucket_;
    // In the order of the names, as they are signed.
    next->target.target +=
        str_cat("?", token.empty() ? "" : str_cat("continuation-token=", aws_encoded(token, false), "&"),
                of.asks_folders ? "delimiter=%2F&" : "",
                "encoding-type=url&list-type=2&prefix=", aws_encoded(of.prefix, false));
    next->where = &next->target;
    next->whole_bytes_max = s3_page_bytes_max;
    next->is_signed = true;
    next->ended = [](fetch& done) noexcept { static_cast<question&>(done).all->end(done.shared_from_this()); };
    client_.start({next});
    asked_.push_back(std::move(next));
  }
  // The client's thread.
  void end(std::shared_ptr<fetch> done) noexcept {
    const mutex_lock lock(mutex_);
    ended_.push_back(std::move(done));
    one_ended_.notify_one();
  }
  std::shared_ptr<question> next_answer() {
    std::shared_ptr<question> next;
    {
      const mutex_lock lock(mutex_);
      while (ended_.empty()) one_ended_.wait(mutex_);
      next = std::static_pointer_cast<question>(ended_.front());
      ended_.pop_front();
    }
    std::erase(asked_, next);
    return next;
  }
  void cancel_all() {
    for (const std::shared_ptr<question>& each : asked_) client_.cancel(each);
    while (!asked_.empty()) static_cast<void>(next_answer());
  }

  void take(question& answer) {
    part& of = *answer.of;
    const bool is_whole = &of == parts_.front().get();
    if (answer.end != fetch_end::whole) {
      // Who may list a folder need not be allowed to list parts of it, or with a delimiter.
      if (of.asks_folders) return go_on(of, false);
      const bool is_told = answer.end == fetch_end::refused || answer.end == fetch_end::missing;
      if (is_told && !is_whole) return go_on_alone();
      throw error(answer.end == fetch_end::missing   ? errc::not_found
                  : answer.end == fetch_end::refused ? errc::permission
                                                     : errc::io,
                  str_cat(shown_, ": its names cannot be listed: ", answer.why));
    }
    ++pages_;
    std::optional<s3_page> page = parse_s3_page(answer.whole);
    if (of.asks_folders) {
      if (!page || !take_folders(of, *page)) go_on(of, false);
      return;
    }
    if (!page) {
      if (!is_whole) return go_on_alone();
      throw error(errc::io, str_cat(shown_, ": what the store answers is no listing"));
    }
    if (std::string wrong = wrong_with(of, *page); !wrong.empty()) {
      if (!is_whole) return go_on_alone();
      refuse(wrong);
    }
    take_names(of, *std::move(page));
  }

  // What a page says is checked against what was asked for. Words that follow "the store's listing"; empty: nothing is wrong.
  static std::string wrong_with(part& of, const s3_page& page) {
    for (const s3_listed& each : page.objects) {
      if (each.key.starts_with(of.prefix)) continue;
      return str_cat("has '", shown_key(each.key), "', which does not begin with the '", of.prefix,
                     "' that was asked for: does it look at prefixes?");
    }
    of.names_read += page.objects.size();
    if (page.next.empty()) return {};
    // What comes again would go on for ever.
    const bool is_new = of.tokens.insert(hash_of{}(page.next)).second;
    if (!is_new || page.objects.empty()) return "does not go on: a page leads to itself, or to one before it";
    const std::uint64_t pages = of.pages + 1;
    if (pages < thin_pages_max || of.names_read >= names_a_page_min * pages) return {};
    return str_cat("does not come to an end: ", pages, " pages had ", of.names_read, " names");
  }
  static std::string shown_key(const std::string& key) {
    constexpr std::size_t shown_max = 100;
    return key.size() <= shown_max ? key : str_cat(std::string_view(key).substr(0, shown_max), "...");
  }
  [[noreturn]] void refuse(std::string_view what) const {
    throw error(errc::io, str_cat(shown_, ": the store's listing ", what));
  }

  void take_names(part& of, s3_page page) {
    of.token = std::move(page.next);
    ++of.pages;
    const std::size_t names_in_page = page.objects.size();
    of.folders_in_page = folders_in(page.objects, of.prefix.size());
    if (of.is_of_folders) {
      std::erase_if(page.objects, [&](const s3_listed& each) { return folder_of(each.key, of.prefix.size()).empty(); });
    }
    count(page.objects.size());
    std::move(page.objects.begin(), page.objects.end(), std::back_inserter(of.objects));
    if (of.token.empty()) return;
    // Looked at again when twice as much has come: names need not go on as they begin. Others that wait keep all requests busy.
    const bool may_divide = of.may_divide && std::has_single_bit(of.pages) && of.folders_in_page > 0 &&
                            waiting_.empty() && asked_.size() < parts_at_once / 2;
    if (may_divide && of.has_folders) return divide(of);
    // Of many small folders there are nearly as many pages as of their objects.
    constexpr std::size_t objects_a_folder_min = 4;
    of.asks_folders = may_divide && of.folders_in_page * objects_a_folder_min <= names_in_page;
    // Before those that wait: what was begun first is the longest.
    waiting_.push_front(&of);
  }
  void count(std::size_t names) {
    names_ += names;
    if (names_ <= s3_names_max) return;
    throw error(errc::limit, str_cat(shown_, ": more than ", s3_names_max,
                                     " objects begin so; write more of the name before the first *"));
  }
  static std::size_t folders_in(const std::vector<s3_listed>& objects, std::size_t prefix_bytes) {
    std::size_t folders = 0;
    std::string_view last;
    for (const s3_listed& each : objects) {
      const std::string_view folder = folder_of(each.key, prefix_bytes);
      if (folder.empty() || folder == last) continue;
      ++folders;
      last = folder;
    }
    return folders;
  }

  // False where it is nothing that can be built on.
  bool take_folders(part& of, s3_page& page) {
    const std::size_t at = of.prefix.size();
    // Groups are divided between characters.
    for (const std::string& each : page.folders) {
      if (!each.starts_with(of.prefix) || folder_of(each, at) != each ||
          first_invalid_utf8(std::as_bytes(std::span(each))))
        return false;
    }
    // A store that knows no delimiter lists what lies in folders too.
    for (const s3_listed& each : page.objects) {
      if (!each.key.starts_with(of.prefix) || !folder_of(each.key, at).empty()) return false;
    }
    if (!page.next.empty() && (page.next == of.folders_token || (page.objects.empty() && page.folders.empty())))
      return false;
    std::move(page.folders.begin(), page.folders.end(), std::back_inserter(of.folders));
    std::move(page.objects.begin(), page.objects.end(), std::back_inserter(of.beside));
    of.folders_token = std::move(page.next);
    if (!of.folders_token.empty()) {
      if (++of.folder_pages >= folder_pages_max) return false;
      waiting_.push_front(&of);
      return true;
    }
    std::sort(of.folders.begin(), of.folders.end());
    of.folders.erase(std::unique(of.folders.begin(), of.folders.end()), of.folders.end());
    std::sort(of.beside.begin(), of.beside.end(), by_key);
    // What was listed in a row has to be there too.
    for (const s3_listed& each : of.objects) {
      const std::string_view folder = folder_of(each.key, at);
      const bool is_there = folder.empty()
                                ? std::binary_search(of.beside.begin(), of.beside.end(), each, by_key)
                                : std::binary_search(of.folders.begin(), of.folders.end(), folder, std::less<>());
      if (!is_there) return false;
    }
    of.has_folders = true;
    divide(of);
    return true;
  }

  // Its folders are known: each group of them becomes a part, or it goes on as it is.
  void divide(part& of) {
    of.asks_folders = false;
    // How many pages all folders may have, by those that the last one had; a folder that is longer tells nothing of the others.
    const bool is_known = of.folders_in_page > 1;
    const std::size_t pages = of.folders.size() / std::max<std::size_t>(of.folders_in_page, 1);
    constexpr std::size_t pages_min = 3;
    if (is_known && pages < of.pages + pages_min) return go_on(of, true);
    // All groups together are as many as pages that were read, beside the first ones.
    const std::size_t groups_max = std::min<std::size_t>(groups_at_most, groups_at_most + pages_ - groups_);
    const std::vector<folder_group> groups =
        group_folders(of.folders, is_known ? std::min(groups_max, 2 * pages) : groups_max);
    if (groups.empty() || (groups.size() == 1 && groups.front().prefix == of.prefix)) return go_on(of, true);
    std::vector<part*> made;
    for (const folder_group& group : groups) {
      part& next = *parts_.emplace_back(std::make_unique<part>());
      next.prefix = group.prefix;
      next.is_of_folders = next.has_folders = group.end - group.begin > 1;
      if (next.has_folders)
        next.folders.assign(of.folders.begin() + static_cast<std::ptrdiff_t>(group.begin),
                            of.folders.begin() + static_cast<std::ptrdiff_t>(group.end));
      made.push_back(&next);
    }
    // The largest first: none of them is begun last and waited for alone.
    std::sort(made.begin(), made.end(),
              [](const part* a, const part* b) { return a->folders.size() > b->folders.size(); });
    waiting_.insert(waiting_.end(), made.begin(), made.end());
    std::copy_if(of.folders.begin(), of.folders.end(), std::back_inserter(unlike_plain_),
                 [](const std::string& each) { return !is_plain(each); });
    groups_ += groups.size();
    names_ -= of.objects.size();
    count(of.beside.size());
    of.is_divided = true;
    if (&of != parts_.front().get()) of.objects = {};
    of.folders = {};
  }

  // Page by page.
  void go_on(part& of, bool may_divide) {
    of.asks_folders = false;
    of.may_divide = may_divide;
    if (!may_divide) {
      of.beside = {};
      of.folders = {};
    }
    waiting_.push_front(&of);
  }
  // The whole, from where it was.
  void go_on_alone() {
    cancel_all();
    waiting_.clear();
    parts_.erase(parts_.begin() + 1, parts_.end());
    unlike_plain_.clear();
    part& whole = *parts_.front();
    whole.is_divided = false;
    go_on(whole, false);
    names_ = whole.objects.size();
  }

  std::vector<s3_listed> collected() {
    std::vector<std::vector<s3_listed>*> runs;
    for (const std::unique_ptr<part>& each : parts_) {
      std::vector<s3_listed>& run = each->is_divided ? each->beside : each->objects;
      if (!std::is_sorted(run.begin(), run.end(), by_key)) std::sort(run.begin(), run.end(), by_key);
      if (!run.empty()) runs.push_back(&run);
    }
    std::sort(runs.begin(), runs.end(), [](const auto* a, const auto* b) { return by_key(a->front(), b->front()); });
    std::vector<s3_listed> all;
    all.reserve(names_);
    for (std::vector<s3_listed>* run : runs) {
      std::move(run->begin(), run->end(), std::back_inserter(all));
      *run = {};
    }
    // Objects beside folders lie between these.
    if (!std::is_sorted(all.begin(), all.end(), by_key)) std::sort(all.begin(), all.end(), by_key);
    return all;
  }
  // A folder's name that was understood wrongly is asked for in vain.
  [[nodiscard]] bool has_all_folders(const std::vector<s3_listed>& all) const {
    return std::all_of(unlike_plain_.begin(), unlike_plain_.end(), [&](const std::string& folder) {
      const auto found = std::lower_bound(all.begin(), all.end(), folder,
                                          [](const s3_listed& a, const std::string& b) { return a.key < b; });
      return found != all.end() && found->key.starts_with(folder);
    });
  }

  const address bucket_;
  const std::string shown_;
  const std::uint64_t pages_max_;
  std::uint64_t pages_ = 0;
  std::uint64_t groups_ = 0;
  std::size_t names_ = 0;
  std::vector<std::unique_ptr<part>> parts_;
  std::deque<part*> waiting_;
  std::vector<std::shared_ptr<question>> asked_;
  std::vector<std::string> unlike_plain_;
  mutex mutex_;
  condition_variable one_ended_;
  std::deque<std::shared_ptr<fetch>> ended_ ABSL_GUARDED_BY(mutex_);
  http_client client_;  // Its thread ends before what it refers to.
};

}  // namespace

std::vector<folder_group> group_folders(std::span<const std::string> folders, std::size_t groups_max) {
  if (folders.empty()) return {};
  // The one with the most folders is divided next.
  const auto is_smaller = [](const folder_group& a, const folder_group& b) {
    return a.end - a.begin < b.end - b.begin;
  };
  std::priority_queue<folder_group, std::vector<folder_group>, decltype(is_smaller)> open(is_smaller);
  std::vector<folder_group> groups;
  open.push(group_of(folders, 0, folders.size()));
  while (!open.empty()) {
    const folder_group largest = open.top();
    open.pop();
    std::vector<folder_group> parts;
    if (largest.end - largest.begin > 1) parts = divided(folders, largest);
    if (parts.empty() || groups.size() + open.size() + parts.size() > groups_max) {
      groups.push_back(largest);
    } else {
      for (folder_group& each : parts) open.push(std::move(each));
    }
  }
  std::sort(groups.begin(), groups.end(),
            [](const folder_group& a, const folder_group& b) { return a.begin < b.begin; });
  return groups;
}

std::vector<s3_listed> list_bucket(const std::string& bucket, const std::string& prefix, const s3_access& store,
                                   const remote_options& options, std::uint64_t pages_max) {
  return bucket_listing(bucket, prefix, store, options, pages_max).run();
}

}  // namespace leat::io
