// SPDX-License-Identifier: Apache-2.0
// Packing and splitting of the access shadow's cells.
#include "simulator/checks/access_shadow.h"

namespace pto::sim {

void AccessShadow::clear() {
  lines_.clear();
  packed_.clear();
  words_.clear();
  bytes_.clear();
}

PackedLine& AccessShadow::pack(AccessCell& line) {
  const uint32_t number = packed_.add();
  PackedLine& packed = packed_[number];
  if (line.write.is_present() || line.reads[0].is_present() || line.reads[1].is_present()) {
    packed = PackedLine(line);
  }
  line = AccessCell{};
  line.is_packed = true;
  line.write.pc = number & 0x3ffffff;
  return packed;
}

AccessShadow::Words& AccessShadow::words_of(AccessCell& line) {
  if (line.is_split) {
    return words_[line.write.pc];
  }
  const uint32_t number = words_.add();
  Words& words = words_[number];
  if (line.is_packed) {
    const PackedLine& packed = packed_[line.write.pc];
    for (unsigned word = 0; word < words.size(); ++word) {
      words[word] = packed.cell(word);
    }
    packed_.release(line.write.pc);
  } else if (line.write.is_present() || line.reads[0].is_present() || line.reads[1].is_present()) {
    words.fill(line); // masks of a line are those of a whole word
  }
  line = AccessCell{};
  line.is_split = true;
  line.write.pc = number & 0x3ffffff;
  return words;
}

AccessShadow::Bytes& AccessShadow::bytes_of(AccessCell& word) {
  if (word.is_split) {
    return bytes_[word.write.pc];
  }
  const uint32_t number = bytes_.add();
  Bytes& bytes = bytes_[number];
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
  word.write.pc = number & 0x3ffffff;
  return bytes;
}

AccessCell AccessShadow::peek(uint64_t address) {
  const AccessCell& line = line_of(address);
  const unsigned in_line = word_of(address);
  if (line.is_packed) {
    return packed_[line.write.pc].cell(in_line);
  }
  if (!line.is_split) {
    return line;
  }
  const AccessCell& word = words_[line.write.pc][in_line];
  return word.is_split ? bytes_[word.write.pc][address % kWordBytes] : word;
}

} // namespace pto::sim
