// SPDX-License-Identifier: Apache-2.0
#include "debugger/dap/message_stream.h"

#include "isa/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace pto::dbg {
namespace {

constexpr size_t kMaxHeaderLine = 4096;
constexpr std::string_view kLength = "content-length";

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return result;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
    text.remove_prefix(1);
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) {
    text.remove_suffix(1);
  }
  return text;
}

/// For a message: what cannot be shown becomes '?', and it stays short.
std::string shown(std::string_view text) {
  std::string result(text.substr(0, 60));
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
      c = '?';
    }
  }
  return result;
}

} // namespace

MessageReader::MessageReader(int fd) : fd_(fd), stop_fd_(::eventfd(0, EFD_CLOEXEC)) {
  PTO_CHECK(stop_fd_ >= 0);
}

MessageReader::~MessageReader() {
  ::close(stop_fd_);
}

void MessageReader::stop() {
  const uint64_t one = 1;
  PTO_CHECK(::write(stop_fd_, &one, sizeof(one)) == sizeof(one));
}

std::optional<std::string> MessageReader::fail(std::string message) {
  is_broken_ = true;
  error_ = std::move(message);
  return std::nullopt;
}

bool MessageReader::fill() {
  if (begin_ != 0) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  std::array<char, 65536> chunk{};
  for (;;) {
    std::array<pollfd, 2> waits = {pollfd{fd_, POLLIN, 0}, pollfd{stop_fd_, POLLIN, 0}};
    if (::poll(waits.data(), waits.size(), -1) < 0) {
      if (errno == EINTR) {
        continue;
      }
      return false;
    }
    if (waits[1].revents != 0) {
      return false;
    }
    const ssize_t count = ::read(fd_, chunk.data(), chunk.size());
    if (count > 0) {
      buffer_.append(chunk.data(), static_cast<size_t>(count));
      return true;
    }
    if (count == 0 || errno != EINTR) {
      return false;
    }
  }
}

std::optional<std::string> MessageReader::read_line() {
  for (;;) {
    const size_t end = buffer_.find('\n', begin_);
    if (end != std::string::npos) {
      std::string line = buffer_.substr(begin_, end - begin_);
      begin_ = end + 1;
      if (!line.empty() && line.back() == '\r') {
        line.pop_back();
      }
      return line;
    }
    if (buffer_.size() - begin_ > kMaxHeaderLine) {
      return fail(fmt::format("a header line is longer than {} bytes; expected "
                              "'Content-Length: N'",
                              kMaxHeaderLine));
    }
    if (!fill()) {
      const bool is_clean = begin_ == buffer_.size();
      return is_clean ? fail({}) : fail("the input ends in the middle of a header");
    }
  }
}

std::optional<size_t> MessageReader::read_header() {
  std::optional<size_t> length;
  for (bool is_first = true;; is_first = false) {
    const std::optional<std::string> line = read_line();
    if (!line) {
      if (error_.empty() && !is_first) {
        static_cast<void>(fail("the input ends in the middle of a header"));
      }
      return std::nullopt;
    }
    if (line->empty()) {
      break;
    }
    const size_t colon = line->find(':');
    if (colon == std::string::npos) {
      static_cast<void>(fail(fmt::format(
          "'{}' is no header; expected 'Content-Length: N' and an empty line", shown(*line))));
      return std::nullopt;
    }
    if (lower(trim(std::string_view(*line).substr(0, colon))) != kLength) {
      continue; // other fields are allowed and mean nothing here
    }
    const std::string_view digits = trim(std::string_view(*line).substr(colon + 1));
    size_t value = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (status != std::errc() || end != digits.data() + digits.size() || value > kMaxBodyBytes) {
      static_cast<void>(
          fail(fmt::format("Content-Length is '{}'; expected a number of bytes up to {}",
                           shown(digits),
                           kMaxBodyBytes)));
      return std::nullopt;
    }
    length = value;
  }
  if (!length) {
    static_cast<void>(fail("a header has no Content-Length"));
  }
  return length;
}

std::optional<std::string> MessageReader::read() {
  if (is_broken_) {
    return std::nullopt;
  }
  const std::optional<size_t> length = read_header();
  if (!length) {
    return std::nullopt;
  }
  while (buffer_.size() - begin_ < *length) {
    if (!fill()) {
      return fail(fmt::format("the input ends after {} of the {} bytes of a message",
                              buffer_.size() - begin_,
                              *length));
    }
  }
  std::string body = buffer_.substr(begin_, *length);
  begin_ += *length;
  return body;
}

bool MessageWriter::write(std::string_view body) {
  const std::string message = fmt::format("Content-Length: {}\r\n\r\n{}", body.size(), body);
  const std::lock_guard<std::mutex> lock(mutex_);
  size_t sent = 0;
  while (is_open_ && sent < message.size()) {
    const ssize_t count = ::write(fd_, message.data() + sent, message.size() - sent);
    if (count >= 0) {
      sent += static_cast<size_t>(count);
    } else if (errno != EINTR) {
      is_open_ = false;
    }
  }
  return is_open_;
}

} // namespace pto::dbg
