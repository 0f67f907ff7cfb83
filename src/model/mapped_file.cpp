#include "model/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <system_error>

#include "graph/error.hpp"

namespace tessera {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view reason) {
  throw Error(fmt::format("cannot read {}: {}", in_quotes(path.native()), reason));
}

[[noreturn]] void refuse_errno(const std::filesystem::path& path) {
  refuse(path, std::generic_category().message(errno));
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

MappedFile MappedFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a FIFO that nobody writes would wait for ever. It means nothing to a regular file.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (file.fd < 0) refuse_errno(path);
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) refuse_errno(path);
  if (S_ISDIR(status.st_mode)) refuse(path, "it is a folder, a file is expected");
  if (!S_ISREG(status.st_mode)) refuse(path, "it is not a regular file");
  if (status.st_size == 0) refuse(path, "it is empty");
  const auto size = static_cast<std::size_t>(status.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) refuse_errno(path);
  return MappedFile({static_cast<const std::byte*>(data), size});
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t most = 500;
  std::string line = "'";
  const auto add = [&](std::string_view part) {
    for (const char c : part) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x20 || byte == 0x7f) {
        fmt::format_to(std::back_inserter(line), "\\x{:02x}", byte);
      } else {
        line += c;
      }
    }
  };
  const auto inside = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };  // of a UTF-8 character
  if (text.size() <= most) {
    add(text);
  } else {
    std::size_t head = most / 2, tail = text.size() - most / 2;
    while (head > 0 && inside(text[head])) --head;
    while (tail < text.size() && inside(text[tail])) ++tail;
    add(text.substr(0, head));
    line += " ... ";
    add(text.substr(tail));
  }
  return line + "'";
}

}  // namespace tessera
