#include "model/files/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <system_error>

#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view reason) {
  throw Error(fmt::format("cannot read {}: {}", in_quotes(path.native()), reason));
}

[[noreturn]] void refuse_errno(const std::filesystem::path& path) {
  refuse(path, std::generic_category().message(errno));
}

}  // namespace

InputFile InputFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a FIFO that nobody writes to would block forever. It has no effect on a regular file.
  InputFile file(path, ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.fd_ < 0) refuse_errno(path);
  struct stat status {};
  if (::fstat(file.fd_, &status) != 0) refuse_errno(path);
  if (S_ISDIR(status.st_mode)) refuse(path, "it is a folder, and a file is expected");
  if (!S_ISREG(status.st_mode)) refuse(path, "it is not a regular file");
  if (status.st_size == 0) refuse(path, "it is empty");
  file.size_ = static_cast<std::uint64_t>(status.st_size);
  return file;
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t got = ::pread(fd_, to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse_errno(path_);
    if (got == 0)
      refuse(path_, fmt::format("it was truncated while it was in use; {} bytes are missing at {}", to.size(), offset));
    offset += static_cast<std::uint64_t>(got);
    to = to.subspan(static_cast<std::size_t>(got));
  }
}

std::string InputFile::text(std::uint64_t offset, std::size_t size) const {
  std::string text(size, '\0');
  read(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

std::string read_whole(const std::filesystem::path& path, std::size_t most) {
  const InputFile file = InputFile::open(path);
  if (file.size() > most)
    refuse(path, fmt::format("it has {} bytes, more than the limit of {} bytes", file.size(), most));
  return file.text(0, static_cast<std::size_t>(file.size()));
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

}  // namespace tessera::internal
