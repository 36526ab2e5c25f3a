// SPDX-License-Identifier: Apache-2.0
// The wire of the Debug Adapter Protocol: JSON bodies, each behind a header with its length.
//
//   Content-Length: 119\r\n
//   \r\n
//   {"seq":153,"type":"request","command":"next","arguments":{"threadId":3}}
//
// Any bytes are valid input: what is no message ends the stream with a sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace pto::dbg {

class MessageReader {
public:
  /// A body longer than this is refused.
  static constexpr size_t kMaxBodyBytes = size_t{64} << 20;

  /// `fd` is borrowed.
  explicit MessageReader(int fd);
  ~MessageReader();
  MessageReader(const MessageReader&) = delete;
  MessageReader& operator=(const MessageReader&) = delete;

  /// The next body. Nothing at the end of the input (error() is empty then) and after bytes that
  /// are no message (error() says what is wrong); nothing ever follows.
  [[nodiscard]] std::optional<std::string> read();
  [[nodiscard]] const std::string& error() const { return error_; }
  /// From any thread: a waiting read() and all later ones find the end of the input.
  void stop();

private:
  bool fill();
  std::optional<std::string> read_line();
  std::optional<size_t> read_header();
  std::optional<std::string> fail(std::string message);

  int fd_;
  int stop_fd_; // readable once stop() was called
  std::string buffer_;
  size_t begin_ = 0; // of what has not been read yet
  bool is_broken_ = false;
  std::string error_;
};

/// Writes whole messages; safe from several threads.
class MessageWriter {
public:
  explicit MessageWriter(int fd) : fd_(fd) {}
  /// False once the other side has gone.
  bool write(std::string_view body);

private:
  int fd_;
  std::mutex mutex_;
  bool is_open_ = true;
};

} // namespace pto::dbg
