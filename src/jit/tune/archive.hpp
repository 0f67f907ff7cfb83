// Values as bytes, for another process of the same build of Tessera. A type lists its fields once, for both directions:
//
//   template <class Archive> void fields(Archive& archive, ArchivedAs<Region> auto& r) { archive(r.kind, r.parent); }
#pragma once
#include <array>
#include <concepts>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tessera/graph/error.hpp"

namespace tessera::internal {

template <class T, class U>
concept ArchivedAs = std::same_as<std::remove_const_t<T>, U>;
template <class T>
concept ArchivedAsBytes = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class ArchiveWriter {
 public:
  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }
  std::string bytes() && { return std::move(bytes_); }

 private:
  template <ArchivedAsBytes T>
  void put(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put(const std::string& text) { put(text.size()), bytes_ += text; }
  template <class T>
  void put(const std::vector<T>& values) {
    put(values.size());
    for (const T& value : values) put(value);
  }
  template <class T, std::size_t n>
  void put(const std::array<T, n>& values) {
    for (const T& value : values) put(value);
  }
  template <class T>
  void put(const T& value) {
    fields(*this, value);
  }

  std::string bytes_;
};

/// Throws Error if the bytes end too early.
class ArchiveReader {
 public:
  explicit ArchiveReader(std::string_view bytes) : rest_(bytes) {}
  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view take(std::size_t size) {
    if (size > rest_.size()) throw Error("an archive of another process ends too early");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  template <ArchivedAsBytes T>
  void get(T& value) {
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
  }
  std::size_t size() {
    std::size_t size = 0;
    get(size);
    return size;
  }
  void get(std::string& text) { text = take(size()); }
  template <class T>
  void get(std::vector<T>& values) {
    const std::size_t count = size();
    if (count > rest_.size()) throw Error("an archive of another process ends too early");  // each has a byte at least
    values.resize(count);
    for (T& value : values) get(value);
  }
  template <class T, std::size_t n>
  void get(std::array<T, n>& values) {
    for (T& value : values) get(value);
  }
  template <class T>
  void get(T& value) {
    fields(*this, value);
  }

  std::string_view rest_;
};

}  // namespace tessera::internal
