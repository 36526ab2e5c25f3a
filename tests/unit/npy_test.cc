// SPDX-License-Identifier: Apache-2.0
// .npy reader and writer: byte orders, memory orders, versions, and a message for every defect.
#include "isa/error.h"
#include "isa/file_io.h"
#include "simulator/npy.h"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <unistd.h>

using namespace pto::sim;

namespace {

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

template <typename T> std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <typename T> std::vector<T> values_of(const NpyArray& array) {
  REQUIRE(array.type.size_bytes == sizeof(T));
  std::vector<T> values(array.data.size() / sizeof(T));
  std::memcpy(values.data(), array.data.data(), array.data.size());
  return values;
}

/// A file image with the given header text and data.
std::string image(const std::string& header, const std::string& data, int major = 1) {
  std::string file("\x93NUMPY", 6);
  file += static_cast<char>(major);
  file += '\0';
  for (size_t i = 0; i < (major == 1 ? 2U : 4U); ++i) {
    file += static_cast<char>((header.size() >> (8 * i)) & 0xFF);
  }
  return file + header + data;
}

std::string
header_of(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

std::string error_of(const std::string& file) {
  std::string error;
  CHECK_FALSE(parse_npy(bytes_of(file), error).has_value());
  return error;
}

NpyArray parsed(const std::string& file) {
  std::string error;
  std::optional<NpyArray> array = parse_npy(bytes_of(file), error);
  REQUIRE_MESSAGE(array.has_value(), error);
  return *array;
}

bool contains(const std::string& text, const std::string& part) {
  const bool is_there = text.find(part) != std::string::npos;
  if (!is_there) {
    MESSAGE("'" << text << "' lacks '" << part << "'");
  }
  return is_there;
}

} // namespace

TEST_CASE("npy: what is written is read back, for every type") {
  for (const std::string name :
       {"b1", "i1", "u1", "i2", "u2", "f2", "i4", "u4", "f4", "i8", "u8", "f8", "V2"}) {
    CAPTURE(name);
    const NpyType type{name[0], static_cast<uint8_t>(name[1] - '0')};
    const std::vector<uint64_t> shape{3, 2};
    std::vector<std::byte> data(6 * type.size_bytes);
    for (size_t i = 0; i < data.size(); ++i) {
      data[i] = static_cast<std::byte>(7 * i + 1);
    }
    const std::vector<std::byte> file = format_npy(type, shape, data);
    CHECK((file.size() - data.size()) % 64 == 0);
    std::string error;
    const std::optional<NpyArray> array = parse_npy(file, error);
    REQUIRE_MESSAGE(array.has_value(), error);
    CHECK(array->type == type);
    CHECK(array->shape == shape);
    CHECK(array->data == data);
    CHECK(to_string(array->type) == name);
  }
}

TEST_CASE("npy: exact bytes of a small file") {
  const std::vector<uint64_t> shape{2};
  const std::vector<std::byte> file =
      format_npy(NpyType{'f', 4}, shape, bytes_of(std::vector<float>{1.0F, -2.0F}));
  std::string expected("\x93NUMPY\x01\x00\x76\x00", 10);
  expected += "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  expected.resize(127, ' ');
  expected += '\n';
  expected += std::string("\x00\x00\x80\x3f\x00\x00\x00\xc0", 8);
  CHECK(file == bytes_of(expected));
}

TEST_CASE("npy: scalars and empty arrays") {
  const NpyArray scalar = parsed(image(header_of("<i4", "False", "()"), {"\x05\0\0\0", 4}));
  CHECK(scalar.shape.empty());
  CHECK(values_of<int32_t>(scalar) == std::vector<int32_t>{5});
  const NpyArray empty = parsed(image(header_of("<f4", "True", "(0, 18446744073709551615)"), ""));
  CHECK(empty.shape == std::vector<uint64_t>{0, UINT64_MAX});
  CHECK(empty.size() == 0);
}

TEST_CASE("npy: big endian data come out little endian") {
  const NpyArray array =
      parsed(image(header_of(">u2", "False", "(3,)"), "\x01\x02\x03\x04\xfe\xff"));
  CHECK(values_of<uint16_t>(array) == std::vector<uint16_t>{0x0102, 0x0304, 0xfeff});
  const NpyArray wide =
      parsed(image(header_of(">f8", "False", "(1,)"), std::string("\x3f\xf8\0\0\0\0\0\0", 8)));
  CHECK(values_of<double>(wide) == std::vector<double>{1.5});
}

TEST_CASE("npy: Fortran order comes out in C order") {
  // numpy.arange(24).reshape(2, 3, 4) stored with the first index fastest.
  std::string data;
  for (int k = 0; k < 4; ++k) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 2; ++i) {
        data += static_cast<char>(12 * i + 4 * j + k);
      }
    }
  }
  const NpyArray array = parsed(image(header_of("|u1", "True", "(2, 3, 4)"), data));
  std::vector<uint8_t> expected(24);
  for (size_t i = 0; i < expected.size(); ++i) {
    expected[i] = static_cast<uint8_t>(i);
  }
  CHECK(values_of<uint8_t>(array) == expected);
}

TEST_CASE("npy: header spellings that numpy accepts") {
  const std::string two("\x01\0\x02\0", 4);
  CHECK(parsed(image("{\"shape\": (2L,), \"descr\": \"<i2\",\"fortran_order\":False}   \n", two))
            .shape == std::vector<uint64_t>{2});
  CHECK(parsed(image("{'descr': u'=i2', 'fortran_order': False, 'shape': ( 1 , 2 )}", two, 2))
            .shape == std::vector<uint64_t>{1, 2});
  CHECK(parsed(image(header_of("?", "False", "(4,)"), two, 3)).type == NpyType{'b', 1});
  CHECK(parsed(image(header_of("|V2", "False", "(2,)"), two)).type == NpyType{'V', 2});
}

TEST_CASE("npy: every defect has its message") {
  const std::string good = image(header_of("<f4", "False", "(3,)"), std::string(12, '\0'));
  CHECK(contains(error_of(""), "it is empty"));
  CHECK(contains(error_of("PK\x03\x04zipfile"), "magic"));
  CHECK(contains(error_of(good.substr(0, 4)), "truncated: it has 4 bytes"));
  CHECK(contains(error_of(good.substr(0, 9)), "the header length needs 10"));
  CHECK(contains(error_of(good.substr(0, 30)), "truncated: it has 30 bytes, the header needs"));
  CHECK(contains(error_of(good.substr(0, good.size() - 5)),
                 "its shape [3] of f4 needs 12 bytes of data, the file has 7 (truncated?)"));
  CHECK(contains(error_of(good + "x"), "needs 12 bytes of data, the file has 13"));
  CHECK(contains(error_of(image("{}", "", 4)), "version is 4.0; accepted are 1.0, 2.0 and 3.0"));
  CHECK(contains(error_of(image(header_of("|O", "False", "(3,)"), "")), "'|O' (Python objects)"));
  CHECK(contains(error_of(image(header_of("<c8", "False", "(1,)"), "")), "complex numbers"));
  CHECK(contains(error_of(image(header_of("<U3", "False", "(1,)"), "")), "strings"));
  CHECK(contains(error_of(image(header_of("<M8[s]", "False", "(1,)"), "")), "times"));
  CHECK(contains(error_of(image(header_of("<f16", "False", "(1,)"), "")), "'<f16' is not supp"));
  CHECK(contains(error_of(image(header_of("<i3", "False", "(1,)"), "")), "'<i3' is not supp"));
  CHECK(contains(error_of(image(header_of("", "False", "(1,)"), "")), "'' is not understood"));
  CHECK(contains(
      error_of(image("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", "")),
      "structured type"));
  CHECK(contains(error_of(image(header_of("<f4", "False", "(4294967296, 4294967296)"), "")),
                 "more bytes than 64 bits"));
  CHECK(contains(error_of(image(header_of("<f4", "False", "(18446744073709551616,)"), "")),
                 "does not fit into 64 bits"));
  CHECK(contains(error_of(image(header_of("<f4", "False", "(-1,)"), "")), "non-negative extent"));
  CHECK(contains(error_of(image(header_of("<f4", "Maybe", "(1,)"), "")), "True or False"));
  CHECK(contains(error_of(image("{'descr': '<f4', 'shape': ()}", "")), "lacks the key 'fortran_"));
  CHECK(contains(error_of(image("{'descr': '<f4', 'descr': '<f4'}", "")), "'descr' twice"));
  CHECK(contains(error_of(image("{'colour': 1}", "")), "unknown key 'colour'"));
  CHECK(contains(error_of(image("{'descr: 1}", "")), "closing quote"));
  CHECK(contains(error_of(image("{'descr': '<f4'", "")), "the header ends where"));
  CHECK(contains(error_of(image("import os", "")), "where '{' of the header's dictionary"));
  std::string deep = "(";
  for (int i = 0; i < 40; ++i) {
    deep += "1,";
  }
  CHECK(contains(error_of(image(header_of("<f4", "False", deep + ")"), "")), "32 dimensions"));
}

TEST_CASE("npy: no prefix and no single changed byte crashes the reader") {
  const std::string good = image(header_of("<i2", "True", "(2, 3)"), "abcdefghijkl");
  std::string error;
  for (size_t size = 0; size < good.size(); ++size) {
    CHECK_FALSE(parse_npy(bytes_of(good.substr(0, size)), error).has_value());
  }
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string bad = good;
    bad[random() % bad.size()] = static_cast<char>(random());
    bad[random() % bad.size()] = static_cast<char>(random());
    const std::optional<NpyArray> array = parse_npy(bytes_of(bad), error);
    if (array) {
      CHECK(shape_bytes(array->shape, array->type.size_bytes) == array->data.size());
    }
  }
}

TEST_CASE("npy: a header over 64 KiB takes format 2.0, and wrong data sizes are misuse") {
  const std::vector<uint64_t> shape(30000, 1);
  const std::vector<std::byte> file = format_npy(NpyType{'u', 1}, shape, bytes_of("x"));
  CHECK(std::to_integer<int>(file[6]) == 2);
  const size_t header_size = std::to_integer<size_t>(file[8]) +
                             (std::to_integer<size_t>(file[9]) << 8) +
                             (std::to_integer<size_t>(file[10]) << 16);
  CHECK(header_size > UINT16_MAX);
  CHECK(file.size() == 12 + header_size + 1);
  CHECK(std::to_integer<char>(file[file.size() - 2]) == '\n');
  CHECK_THROWS_AS(format_npy(NpyType{'u', 1}, shape, bytes_of("xy")), pto::Error);
}

TEST_CASE("npy: files") {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("pto_npy_test_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const std::string path = (folder / "a.npy").string();
  const std::vector<uint64_t> shape{2};
  std::string error;
  REQUIRE(write_npy(path, NpyType{'i', 4}, shape, bytes_of(std::vector<int32_t>{7, -7}), error));
  std::optional<NpyArray> array = read_npy(path, error);
  REQUIRE_MESSAGE(array.has_value(), error);
  CHECK(values_of<int32_t>(*array) == std::vector<int32_t>{7, -7});

  SUBCASE("a second write replaces the first and leaves nothing beside it") {
    REQUIRE(write_npy(path, NpyType{'i', 4}, shape, bytes_of(std::vector<int32_t>{1, 2}), error));
    CHECK(values_of<int32_t>(*read_npy(path, error)) == std::vector<int32_t>{1, 2});
    CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator{}) == 1);
  }
  SUBCASE("a symbolic link is followed") {
    const fs::path link = folder / "link.npy";
    fs::create_symlink("a.npy", link);
    REQUIRE(write_npy(
        link.string(), NpyType{'i', 4}, shape, bytes_of(std::vector<int32_t>{3, 4}), error));
    CHECK(fs::is_symlink(link));
    CHECK(values_of<int32_t>(*read_npy(path, error)) == std::vector<int32_t>{3, 4});
  }
  SUBCASE("errors name the path") {
    CHECK_FALSE(read_npy((folder / "none.npy").string(), error).has_value());
    CHECK(contains(error, "none.npy': No such file or directory"));
    CHECK_FALSE(read_npy(folder.string(), error).has_value());
    CHECK(contains(error, "it is a directory"));
    std::ofstream(path) << "no numpy";
    CHECK_FALSE(read_npy(path, error).has_value());
    CHECK(contains(error, "a.npy' is not a usable .npy file: it starts with 'no num'"));
    CHECK_FALSE(write_npy(
        (folder / "no/such/folder.npy").string(), NpyType{'i', 4}, shape, array->data, error));
    CHECK(contains(error, "cannot write '"));
    CHECK_FALSE(pto::isa::read_file(path, error, 3).has_value());
    CHECK(contains(error, "it has 8 bytes, the largest accepted file has 3"));
  }
  SUBCASE("a device is written, not replaced") {
    CHECK(write_npy("/dev/null", NpyType{'i', 4}, shape, array->data, error));
    CHECK(fs::is_character_file("/dev/null"));
  }
  fs::remove_all(folder);
}
