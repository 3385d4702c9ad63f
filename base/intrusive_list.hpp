// A doubly linked list through the elements themselves: for those who wait in a queue and may leave it from the middle.
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>

namespace leat {

/// What an element of an intrusive_list derives from.
class list_hook {
 public:
  list_hook() = default;
  list_hook(const list_hook&) = delete;
  list_hook& operator=(const list_hook&) = delete;
  [[nodiscard]] bool linked() const noexcept { return linked_; }

 protected:
  ~list_hook() { assert(!linked_ && "destroyed while in a list"); }

 private:
  template <class Element>
  friend class intrusive_list;
  list_hook* previous_ = nullptr;
  list_hook* next_ = nullptr;
  bool linked_ = false;
};

/// First in, first out, with removal from anywhere in O(1). Owns nothing, locks nothing.
template <class Element>
class intrusive_list {
 public:
  intrusive_list() = default;
  intrusive_list(const intrusive_list&) = delete;
  intrusive_list& operator=(const intrusive_list&) = delete;

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// The oldest element; the list is not empty.
  [[nodiscard]] Element& front() const noexcept {
    assert(!empty());
    return static_cast<Element&>(*first_);
  }

  /// For looking at all of them, oldest first; to take some out, note which, and do it afterwards.
  class iterator {
   public:
    explicit iterator(list_hook* at) noexcept : at_(at) {}
    [[nodiscard]] Element& operator*() const noexcept { return static_cast<Element&>(*at_); }
    iterator& operator++() noexcept {
      at_ = intrusive_list::next_of(*at_);
      return *this;
    }
    friend bool operator==(iterator, iterator) = default;

   private:
    list_hook* at_;
  };
  [[nodiscard]] iterator begin() const noexcept { return iterator(first_); }
  [[nodiscard]] iterator end() const noexcept { return iterator(nullptr); }

  void push_back(Element& element) noexcept {
    list_hook& hook = element;
    assert(!hook.linked_);
    hook.linked_ = true;
    hook.previous_ = last_;
    hook.next_ = nullptr;
    (last_ != nullptr ? last_->next_ : first_) = &hook;
    last_ = &hook;
    ++size_;
  }

  /// Takes an element of this list out of it.
  void remove(Element& element) noexcept {
    list_hook& hook = element;
    assert(hook.linked_);
    (hook.previous_ != nullptr ? hook.previous_->next_ : first_) = hook.next_;
    (hook.next_ != nullptr ? hook.next_->previous_ : last_) = hook.previous_;
    hook.linked_ = false;
    hook.previous_ = nullptr;
    hook.next_ = nullptr;
    --size_;
  }

  Element& pop_front() noexcept {
    Element& oldest = front();
    remove(oldest);
    return oldest;
  }

 private:
  static list_hook* next_of(const list_hook& hook) noexcept { return hook.next_; }

  list_hook* first_ = nullptr;
  list_hook* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace leat
