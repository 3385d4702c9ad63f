// Samples that a function or a coroutine makes.
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/column_table.hpp"
#include "datasets/tables/describe.hpp"

#include <leat/error.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>

#include <boost/asio/awaitable.hpp>

#include <atomic>
#include <utility>

namespace leat {
namespace datasets {
namespace {

namespace asio = boost::asio;

using make_function = function_of_fields;
using fetch_function = coroutine_of_fields;

class function_model final : public dataset_model, making_facet {
 public:
  function_model(std::uint64_t samples, make_function make, fetch_function fetch,
                 const std::vector<function_field>& fields, function_options options)
      : make_(std::move(make)),
        fetch_(std::move(fetch)),
        form_(make_ ? part_form::produced : part_form::awaited),
        name_(std::move(options.name)),
        described_as_(std::move(options.described_as)),
        columns_(std::move(options.columns), samples) {
    if (fields.empty()) throw error(errc::usage, "samples without a field; name at least one");
    if (!make_ && !fetch_) throw error(errc::usage, "the function that makes the samples is empty");
    for (const function_field& each : fields) add_field(each, samples);
    facets_.columns = &columns_;
    facets_.making = this;
    classes_ = std::make_shared<class_names>(class_names{std::move(options.classes)});
  }

  std::uint64_t size() const noexcept override { return columns_.samples(); }

  void parts(std::uint64_t, std::span<const need> needs, part_list& out) const override {
    for (const need& wanted : needs) out.push_back({.field = wanted.field, .form = form_});
  }

  std::span<const std::byte> produce(std::uint64_t sample, std::uint16_t field,
                                     std::vector<std::byte>& scratch) const override {
    if (fields_.size() == 1) {
      scratch = std::move(made_of(sample).front());
      check(sample, field, scratch.size());
      return scratch;
    }
    // Of the sample that this thread has made last. The model's number tells it from another that lies where it lay.
    thread_local std::uint64_t model = 0;
    thread_local std::uint64_t made_sample = 0;
    thread_local std::vector<std::vector<std::byte>> made;
    if (model != number_ || made_sample != sample) {
      model = 0;
      made = made_of(sample);
      model = number_;
      made_sample = sample;
    }
    check(sample, field, made[field].size());
    scratch.assign(made[field].begin(), made[field].end());
    return scratch;
  }

  asio::awaitable<std::vector<std::vector<std::byte>>> fetch(std::uint64_t sample,
                                                             std::vector<std::uint16_t> fields) const override {
    std::vector<std::vector<std::byte>> all = co_await fetch_(sample);
    check_count(sample, all.size());
    std::vector<std::vector<std::byte>> wanted;
    for (const std::uint16_t field : fields) {
      check(sample, field, all[field].size());
      wanted.push_back(std::move(all[field]));
    }
    co_return wanted;
  }
  // One call gives all fields of a sample.
  std::uint16_t fetch_group(std::uint64_t, std::uint16_t) const override { return 0; }

  std::string name(std::uint64_t sample) const override { return name_ ? name_(sample) : str_cat("sample ", sample); }

  void describe(description& out) const override {
    describe_model(out, make_ ? "function" : "coroutine", *this);
    columns_.describe(out);
    if (described_as_.empty()) {
      out.add_unnamed("function",
                      "name it: function_options::described_as, another name whenever it gives other bytes");
    } else {
      out.add("function", described_as_);
    }
  }

  dataset_memory memory() const override {
    dataset_memory held;
    held.columns = columns_.memory_bytes();
    return held;
  }

 private:
  void add_field(const function_field& added, std::uint64_t samples) {
    if (added.name.empty()) throw error(errc::usage, "function_options::field: a field needs a name");
    if (added.bytes_max == 0) {
      throw error(
          errc::usage,
          "function_options::bytes_max is not set: say how many bytes one call returns at most, the loader takes "
          "that much of its budget for each sample on its way");
    }
    if (find_field(added.name)) {
      throw error(errc::usage, str_cat("two fields of a function are called '", added.name, "'"));
    }
    field_info& field = fields_.emplace_back();
    field.name = added.name;
    field.kind = kind_of(added.name);
    field.samples = samples;
    field.bytes_max = added.bytes_max;
    field.bytes_total = samples * added.bytes_max;
    forms_.push_back(form_);
  }
  [[nodiscard]] std::vector<std::vector<std::byte>> made_of(std::uint64_t sample) const {
    std::vector<std::vector<std::byte>> made = make_(sample);
    check_count(sample, made.size());
    return made;
  }
  void check_count(std::uint64_t sample, std::size_t values) const {
    if (values == fields_.size()) return;
    throw error(errc::usage,
                str_cat(name(sample), ": the function returned ", values, " values for ", fields_.size(), " fields"));
  }
  void check(std::uint64_t sample, std::uint16_t field, std::size_t bytes) const {
    if (bytes <= fields_[field].bytes_max) return;
    throw error(errc::limit,
                str_cat(name(sample), ": the function returned ", bytes,
                        " bytes; function_options::bytes_max promised at most ", fields_[field].bytes_max));
  }
  static std::uint64_t next_number() {
    static std::atomic<std::uint64_t> last = 0;
    return ++last;
  }

  make_function make_;
  fetch_function fetch_;
  part_form form_;
  std::function<std::string(std::uint64_t)> name_;
  std::string described_as_;
  column_table columns_;
  const std::uint64_t number_ = next_number();
};

using fetch_of_one = std::function<coroutine_of_bytes(std::uint64_t)>;

// `fetch` lives as long as the dataset, which outlives what is awaited of it.
asio::awaitable<std::vector<std::vector<std::byte>>> fetch_only_field(const fetch_of_one& fetch, std::uint64_t sample) {
  std::vector<std::vector<std::byte>> fetched;
  fetched.push_back(co_await fetch(sample));
  co_return fetched;
}

}  // namespace
}  // namespace datasets

dataset from_function(std::uint64_t samples, std::function<std::vector<std::byte>(std::uint64_t)> make,
                      function_options options) {
  function_of_fields all;
  if (make) {
    all = [make = std::move(make)](std::uint64_t sample) {
      std::vector<std::vector<std::byte>> made;
      made.push_back(make(sample));
      return made;
    };
  }
  const std::vector<function_field> fields{{options.field, options.bytes_max}};
  return dataset(
      std::make_shared<datasets::function_model>(samples, std::move(all), nullptr, fields, std::move(options)));
}

dataset from_function(std::uint64_t samples, function_of_fields make, std::vector<function_field> fields,
                      function_options options) {
  return dataset(
      std::make_shared<datasets::function_model>(samples, std::move(make), nullptr, fields, std::move(options)));
}

dataset from_coroutine(std::uint64_t samples, std::function<coroutine_of_bytes(std::uint64_t)> fetch,
                       function_options options) {
  coroutine_of_fields all;
  if (fetch) {
    all = [fetch = std::move(fetch)](std::uint64_t sample) { return datasets::fetch_only_field(fetch, sample); };
  }
  const std::vector<function_field> fields{{options.field, options.bytes_max}};
  return dataset(
      std::make_shared<datasets::function_model>(samples, nullptr, std::move(all), fields, std::move(options)));
}

dataset from_coroutine(std::uint64_t samples, coroutine_of_fields fetch, std::vector<function_field> fields,
                       function_options options) {
  return dataset(
      std::make_shared<datasets::function_model>(samples, nullptr, std::move(fetch), fields, std::move(options)));
}

}  // namespace leat
