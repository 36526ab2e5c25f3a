// SPDX-License-Identifier: Apache-2.0
// File reads and atomic writes on POSIX descriptors; every failure carries the path and errno text.
#include "isa/file_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/stat.h>
#include <unistd.h>

namespace pto::isa {
namespace {

/// Owns a descriptor; closes it when it goes out of scope.
class Descriptor {
public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }

  /// Closing can report a delayed write error, so writers call this themselves.
  bool close() {
    if (fd_ < 0) {
      return true;
    }
    const int result = ::close(fd_);
    fd_ = -1;
    return result == 0;
  }

private:
  int fd_;
};

bool write_all(int fd, std::span<const std::byte> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const size_t chunk = std::min<size_t>(bytes.size() - done, size_t{1} << 30);
    const ssize_t written = ::write(fd, bytes.data() + done, chunk);
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      return false;
    }
    done += static_cast<size_t>(written);
  }
  return true;
}

std::string write_failure(const std::string& path, int error_number) {
  return fmt::format("cannot write '{}': {}", path, std::strerror(error_number));
}

/// The file that a chain of symbolic links ends at; the path itself when it does not exist yet.
std::string resolve_links(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) {
    return path;
  }
  std::string result(resolved);
  std::free(resolved);
  return result;
}

/// The new file gets what `old` has. Changing the owner takes rights that few users have; without
/// them the file is the writer's, as any new one.
bool copy_mode(int fd, const struct stat& old) {
  struct stat now = {};
  if (::fstat(fd, &now) != 0) {
    return false;
  }
  if (now.st_uid != old.st_uid || now.st_gid != old.st_gid) {
    static_cast<void>(::fchown(fd, old.st_uid, old.st_gid) == 0);
  }
  return ::fchmod(fd, old.st_mode & 07777) == 0;
}

/// Opens a new file beside `target` under a name nobody else has.
std::optional<int> open_beside(const std::string& target, mode_t mode, std::string& temporary) {
  static std::atomic<unsigned> counter{0};
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary = fmt::format("{}.{}.{}.tmp", target, ::getpid(), counter.fetch_add(1));
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0) {
      return fd;
    }
    if (errno != EEXIST) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

/// `what` is how messages call it, with the quotes of a path.
std::optional<std::vector<std::byte>>
read_descriptor(int fd, const std::string& what, std::string& error, uint64_t limit_bytes) {
  struct stat info = {};
  if (::fstat(fd, &info) != 0) {
    error = fmt::format("cannot read {}: {}", what, std::strerror(errno));
    return std::nullopt;
  }
  if (S_ISDIR(info.st_mode) && (::fcntl(fd, F_GETFL) & O_PATH) == 0) {
    error = fmt::format("cannot read {}: it is a directory, a file was expected", what);
    return std::nullopt;
  }
  const bool is_file = S_ISREG(info.st_mode);
  if (!is_file) {
    limit_bytes = std::min(limit_bytes, kEndlessLimitBytes);
  }
  const auto too_large = [&](const std::string& size) {
    error = is_file ? fmt::format("cannot read {}: it has {} bytes, the largest accepted file has "
                                  "{}",
                                  what,
                                  size,
                                  limit_bytes)
                    : fmt::format("cannot read {}: it is no file and gave {} bytes, which may have "
                                  "no end; save what it gives to a file",
                                  what,
                                  size);
    return std::nullopt;
  };
  const uint64_t expected = is_file ? static_cast<uint64_t>(info.st_size) : 0;
  if (expected > limit_bytes) {
    return too_large(std::to_string(expected));
  }
  try {
    std::vector<std::byte> bytes(expected);
    size_t size = 0;
    while (true) {
      if (size == bytes.size()) {
        // One byte more than expected, so that the end of a regular file is seen without regrowth.
        const size_t larger = size == expected ? size + 1 : size + std::max<size_t>(size, 1 << 16);
        bytes.resize(std::max<size_t>(size + 1, std::min<size_t>(larger, limit_bytes + 1)));
      }
      const size_t room = std::min<size_t>(bytes.size() - size, size_t{1} << 30);
      const ssize_t got = ::read(fd, bytes.data() + size, room);
      if (got < 0) {
        if (errno == EINTR) {
          continue;
        }
        error = fmt::format("cannot read {}: {}", what, std::strerror(errno));
        return std::nullopt;
      }
      if (got == 0) {
        break;
      }
      size += static_cast<size_t>(got);
      if (size > limit_bytes) {
        return too_large(fmt::format("over {}", limit_bytes));
      }
    }
    bytes.resize(size);
    return bytes;
  } catch (const std::bad_alloc&) {
    error = fmt::format("cannot read {}: out of memory ({} bytes)", what, expected);
    return std::nullopt;
  }
}

} // namespace

std::optional<std::vector<std::byte>>
read_file(const std::string& path, std::string& error, uint64_t limit_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) {
    error = fmt::format("cannot read '{}': {}", path, std::strerror(errno));
    return std::nullopt;
  }
  return read_descriptor(file.get(), fmt::format("'{}'", path), error, limit_bytes);
}

std::optional<std::vector<std::byte>> read_standard_input(std::string& error,
                                                          uint64_t limit_bytes) {
  return read_descriptor(STDIN_FILENO, "standard input", error, limit_bytes);
}

bool write_file_atomically(const std::string& path,
                           std::span<const std::byte> bytes,
                           std::string& error) {
  const std::string target = resolve_links(path);
  struct stat info = {};
  const bool exists = ::stat(target.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) {
    if (S_ISDIR(info.st_mode)) {
      error = fmt::format("cannot write '{}': it is a directory, a file was expected", path);
      return false;
    }
    Descriptor device(::open(target.c_str(), O_WRONLY | O_CLOEXEC));
    if (!device.is_open() || !write_all(device.get(), bytes) || !device.close()) {
      error = write_failure(path, errno);
      return false;
    }
    return true;
  }
  // Renaming asks for rights on the folder alone.
  if (exists && ::faccessat(AT_FDCWD, target.c_str(), W_OK, AT_EACCESS) != 0) {
    error = write_failure(path, errno);
    return false;
  }
  std::string temporary;
  // What takes the place of a file may be as private as that one: nobody reads it before its mode
  // is known.
  const std::optional<int> fd = open_beside(target, exists ? 0600 : 0666, temporary);
  if (!fd) {
    error = write_failure(path, errno);
    return false;
  }
  Descriptor file(*fd);
  if (!write_all(file.get(), bytes) || (exists && !copy_mode(file.get(), info)) || !file.close() ||
      ::rename(temporary.c_str(), target.c_str()) != 0) {
    error = write_failure(path, errno);
    ::unlink(temporary.c_str());
    return false;
  }
  return true;
}

} // namespace pto::isa
