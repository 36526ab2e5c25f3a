// SPDX-License-Identifier: Apache-2.0
// Splitting of the access shadow's cells.
#include "simulator/checks/access_shadow.h"

namespace pto::sim {

void AccessShadow::clear() {
  lines_.clear();
  words_.clear();
  bytes_.clear();
}

AccessShadow::Words& AccessShadow::words_of(AccessCell& line) {
  if (line.is_split) {
    return words_[line.write.pc];
  }
  Words& words = words_.add();
  if (line.write.is_present() || line.reads[0].is_present() || line.reads[1].is_present()) {
    words.fill(line); // masks of a line are those of a whole word
  }
  line = AccessCell{};
  line.is_split = true;
  line.write.pc = static_cast<uint32_t>(words_.count() - 1) & 0x3ffffff;
  return words;
}

AccessShadow::Bytes& AccessShadow::bytes_of(AccessCell& word) {
  if (word.is_split) {
    return bytes_[word.write.pc];
  }
  Bytes& bytes = bytes_.add();
  for (unsigned i = 0; i < kWordBytes; ++i) {
    AccessCell& byte = bytes[i];
    if ((word.write_bytes >> i & 1) != 0) {
      byte.write = word.write;
      byte.write_bytes = kAllBytes;
      byte.is_write_atomic = word.is_write_atomic;
    }
    for (unsigned r = 0; r < 2; ++r) {
      if ((word.read_bytes[r] >> i & 1) != 0) {
        byte.reads[r] = word.reads[r];
        byte.read_bytes[r] = kAllBytes;
      }
    }
  }
  word = AccessCell{};
  word.is_split = true;
  word.write.pc = static_cast<uint32_t>(bytes_.count() - 1) & 0x3ffffff;
  return bytes;
}

const AccessCell& AccessShadow::peek(uint64_t address) {
  const AccessCell& line = lines_[address / kLineBytes];
  if (!line.is_split) {
    return line;
  }
  const AccessCell& word = words_[line.write.pc][address % kLineBytes / kWordBytes];
  return word.is_split ? bytes_[word.write.pc][address % kWordBytes] : word;
}

} // namespace pto::sim
