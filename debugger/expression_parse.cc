// SPDX-License-Identifier: Apache-2.0
// Text -> tree, by recursive descent with C's precedence. Depth is bounded, so that any text is a
// valid input.
#include "debugger/expression_tree.h"
#include "isa/suggest.h"
#include "simulator/element.h"
#include "simulator/number_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

namespace pto::dbg {

std::string to_string(RegisterRef reg) {
  static constexpr char kLetters[] = {'r', 'd', 'p', 't'};
  return fmt::format("{}{}", kLetters[static_cast<unsigned>(reg.file)], reg.index);
}

std::optional<RegisterRef> find_register(std::string_view name) {
  static constexpr std::string_view kLetters = "rdpt";
  static constexpr uint32_t kCounts[] = {
      isa::kReg32Count, isa::kReg64Count, isa::kPredCount, isa::kTileCount};
  if (name.size() < 2 || name.size() > 4) {
    return std::nullopt;
  }
  const size_t file = kLetters.find(name[0]);
  const std::string_view digits = name.substr(1);
  if (file == std::string_view::npos ||
      digits.find_first_not_of("0123456789") != std::string_view::npos ||
      (digits.size() > 1 && digits[0] == '0')) {
    return std::nullopt;
  }
  uint32_t index = 0;
  for (const char c : digits) {
    index = index * 10 + static_cast<uint32_t>(c - '0');
  }
  if (index >= kCounts[file]) {
    return std::nullopt;
  }
  return RegisterRef{static_cast<RegisterFile>(file), index};
}

class ExpressionParser {
public:
  ExpressionParser(std::string_view text, const sim::Program& program)
      : text_(text), program_(program) {}

  bool parse(Expression::Tree& tree, std::string& error) {
    tree_ = &tree;
    tree.root = choice();
    skip();
    if (error_.empty() && at_ < text_.size()) {
      fail(fmt::format("'{}' is not expected here", text_.substr(at_, 16)));
    }
    error = error_;
    return error_.empty();
  }

private:
  static constexpr int kMaxDepth = 200;
  static constexpr size_t kMaxNodes = 4096;

  int fail(std::string message) {
    if (error_.empty()) {
      error_ = fmt::format("{} (column {} of '{}')", message, at_ + 1, text_);
    }
    return -1;
  }

  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
      ++at_;
    }
  }
  bool take(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) {
      return false;
    }
    at_ += token.size();
    return true;
  }
  [[nodiscard]] char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  static bool is_word_char(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  }
  std::string_view word() {
    skip();
    size_t end = at_;
    while (end < text_.size() && is_word_char(text_[end])) {
      ++end;
    }
    const std::string_view found = text_.substr(at_, end - at_);
    at_ = end;
    return found;
  }

  int add(Node node) {
    if (!error_.empty()) {
      return -1;
    }
    if (tree_->nodes.size() >= kMaxNodes) {
      return fail("the expression is too long");
    }
    tree_->nodes.push_back(node);
    return static_cast<int>(tree_->nodes.size()) - 1;
  }
  int unary_node(Op op, int operand) {
    Node node;
    node.kind = NodeKind::kUnary;
    node.op = op;
    node.left = operand;
    return add(node);
  }

  // ------------------------------------------------ operators
  struct Binary {
    std::string_view token;
    Op op;
    int level;
  };
  /// Longer tokens first.
  static constexpr std::array<Binary, 18> kBinaries = {{
      {"<<", Op::kShiftLeft, 8},
      {">>", Op::kShiftRight, 8},
      {"<=", Op::kLessEqual, 7},
      {">=", Op::kGreaterEqual, 7},
      {"==", Op::kEqual, 6},
      {"!=", Op::kNotEqual, 6},
      {"&&", Op::kLogicalAnd, 2},
      {"||", Op::kLogicalOr, 1},
      {"<", Op::kLess, 7},
      {">", Op::kGreater, 7},
      {"*", Op::kMultiply, 10},
      {"/", Op::kDivide, 10},
      {"%", Op::kRemainder, 10},
      {"+", Op::kAdd, 9},
      {"-", Op::kSubtract, 9},
      {"&", Op::kAnd, 5},
      {"^", Op::kXor, 4},
      {"|", Op::kOr, 3},
  }};
  static constexpr int kAdditive = 9;

  int choice() {
    const int condition = binary(1);
    if (!error_.empty() || !take("?")) {
      return condition;
    }
    Node node;
    node.kind = NodeKind::kChoice;
    node.left = condition;
    node.right = choice();
    if (!take(":")) {
      return fail("':' is missing after '?'");
    }
    node.third = choice();
    return add(node);
  }

  int binary(int level) {
    if (++depth_ > kMaxDepth) {
      --depth_;
      return fail("the expression is nested too deeply");
    }
    int left = unary();
    while (error_.empty()) {
      const Binary* found = nullptr;
      skip();
      for (const Binary& candidate : kBinaries) {
        if (text_.substr(at_, candidate.token.size()) == candidate.token) {
          found = &candidate;
          break;
        }
      }
      if (found == nullptr || found->level < level) {
        break;
      }
      at_ += found->token.size();
      Node node;
      node.kind = NodeKind::kBinary;
      node.op = found->op;
      node.left = left;
      node.right = binary(found->level + 1);
      left = add(node);
    }
    --depth_;
    return left;
  }

  int unary() {
    if (++depth_ > kMaxDepth) {
      --depth_;
      return fail("the expression is nested too deeply");
    }
    const int result = unary_inner();
    --depth_;
    return result;
  }

  int unary_inner() {
    static constexpr std::array<std::pair<char, Op>, 4> kPrefixes = {
        {{'-', Op::kNegate}, {'~', Op::kComplement}, {'!', Op::kNot}, {'+', Op::kPlus}}};
    for (const auto& [token, op] : kPrefixes) {
      if (peek() == token) {
        ++at_;
        return unary_node(op, unary());
      }
    }
    if (peek() == '*' || peek() == '&') {
      Node node;
      node.kind = peek() == '*' ? NodeKind::kDeref : NodeKind::kAddressOf;
      ++at_;
      node.left = unary();
      return add(node);
    }
    if (peek() == '(') {
      const size_t before = at_;
      ++at_;
      const std::string_view name = word();
      const auto type = isa::find_type(name);
      if (type && *type != isa::Type::kNone) {
        Node node;
        node.kind = NodeKind::kCast;
        node.type = *type;
        node.is_pointer = take("*");
        if (!take(")")) {
          return fail("')' is missing after the type");
        }
        node.left = unary();
        return add(node);
      }
      at_ = before;
    }
    return postfix();
  }

  int postfix() {
    int left = primary();
    while (error_.empty()) {
      if (take("[")) {
        Node node;
        node.kind = NodeKind::kIndex;
        node.left = left;
        node.right = choice();
        if (!take("]")) {
          return fail("']' is missing");
        }
        left = add(node);
      } else if (peek() == '@') {
        ++at_;
        left = range(left);
      } else {
        break;
      }
    }
    return left;
  }

  /// After '@': how many elements, or which lanes.
  int range(int left) {
    Node node;
    node.left = left;
    node.kind = NodeKind::kLanes;
    if (take("*")) {
      node.has_all_lanes = true;
      return add(node);
    }
    if (left >= 0 && tree_->nodes[static_cast<size_t>(left)].kind == NodeKind::kRegister) {
      const std::optional<uint32_t> first = lane_number();
      if (!first) {
        return fail("after '@' expected *, a lane or FIRST-LAST");
      }
      node.first_lane = *first;
      node.last_lane = *first;
      if (take("-")) {
        const std::optional<uint32_t> last = lane_number();
        if (!last || *last < *first) {
          return fail("after '-' expected a lane that is not below the first");
        }
        node.last_lane = *last;
      }
      return add(node);
    }
    node.kind = NodeKind::kCount;
    node.right = unary();
    return add(node);
  }

  std::optional<uint32_t> lane_number() {
    skip();
    size_t end = at_;
    while (end < text_.size() && std::isdigit(static_cast<unsigned char>(text_[end])) != 0) {
      ++end;
    }
    if (end == at_ || end - at_ > 6) {
      return std::nullopt;
    }
    const auto value = static_cast<uint32_t>(std::stoul(std::string(text_.substr(at_, end - at_))));
    at_ = end;
    return value;
  }

  // ------------------------------------------------ primaries
  int primary() {
    const char c = peek();
    if (c == '(') {
      ++at_;
      const int inner = choice();
      if (!take(")")) {
        return fail("')' is missing");
      }
      return inner;
    }
    if (c == '$') {
      ++at_;
      return dollar();
    }
    if (c == '%') {
      ++at_;
      return special(word());
    }
    if (c == '@') { // @l1(0x40)
      ++at_;
      const std::string_view name = word();
      const std::optional<isa::Space> space = find_space(name);
      if (!space || !take("(")) {
        return fail("after '@' expected hbm(ADDRESS), l1(OFFSET) or const(OFFSET)");
      }
      Node node;
      node.kind = NodeKind::kAddress;
      node.space = *space;
      node.left = choice();
      if (!take(")")) {
        return fail("')' is missing");
      }
      return add(node);
    }
    if (std::isdigit(static_cast<unsigned char>(c)) != 0 ||
        (c == '.' && at_ + 1 < text_.size() &&
         std::isdigit(static_cast<unsigned char>(text_[at_ + 1])) != 0)) {
      return number();
    }
    if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_') {
      return name();
    }
    return fail(c == '\0' ? std::string("the expression ends too early; expected a value")
                          : fmt::format("'{}' is no value", c));
  }

  static std::optional<isa::Space> find_space(std::string_view word) {
    for (const isa::Space space : {isa::Space::kHbm, isa::Space::kL1, isa::Space::kConst}) {
      if (word == isa::name(space)) {
        return space;
      }
    }
    return std::nullopt;
  }

  int number() {
    size_t end = at_;
    const bool is_hex = text_.substr(at_, 2) == "0x" || text_.substr(at_, 2) == "0X";
    bool is_real = false;
    while (end < text_.size()) {
      const char c = text_[end];
      const bool is_sign = (c == '+' || c == '-') && end > at_ && !is_hex &&
                           (text_[end - 1] == 'e' || text_[end - 1] == 'E');
      if (!is_word_char(c) && !is_sign) {
        break;
      }
      is_real = is_real || (!is_hex && (c == '.' || c == 'e' || c == 'E'));
      ++end;
    }
    const std::string digits(text_.substr(at_, end - at_));
    Node node;
    if (is_real) {
      char* stop = nullptr;
      const double value = std::strtod(digits.c_str(), &stop);
      if (*stop != '\0') {
        return fail(fmt::format("'{}' is no number", digits));
      }
      node.constant = Value::of_real(value);
    } else {
      std::string reason;
      const std::optional<uint64_t> value = sim::parse_count(digits, reason);
      if (!value) {
        const bool is_number = digits.find_first_not_of("0123456789_") == std::string::npos;
        return fail(is_number ? fmt::format("{} has more than 64 bits", digits)
                              : fmt::format("'{}' is no number", digits));
      }
      node.constant = {*value > static_cast<uint64_t>(INT64_MAX) ? isa::Type::kU64
                                                                 : isa::Type::kS64,
                       false,
                       *value,
                       0};
    }
    at_ = end;
    return add(node);
  }

  /// Of a register whose name of `length` characters has just been read.
  int register_node(RegisterRef reg, size_t length) {
    std::string reason;
    if (!has_register(program_, reg, reason)) {
      at_ -= length;
      return fail(reason);
    }
    Node node;
    node.kind = NodeKind::kRegister;
    node.reg = reg;
    return add(node);
  }

  int dollar() {
    const std::string_view name = word();
    Node node;
    if (const auto reg = find_register(name)) {
      return register_node(*reg, name.size());
    }
    for (size_t i = 0; i < std::size(kVariableNames); ++i) {
      if (kVariableNames[i] == name) {
        node.kind = NodeKind::kVariable;
        node.number = static_cast<uint32_t>(i);
        return add(node);
      }
    }
    node.kind = NodeKind::kHistory;
    if (name.empty()) { // $ or $$ or $$N
      node.is_from_end = true;
      if (at_ < text_.size() && text_[at_] == '$') {
        ++at_;
        const std::optional<uint32_t> back = lane_number();
        node.number = back.value_or(1);
      }
      return add(node);
    }
    if (name.find_first_not_of("0123456789") == std::string_view::npos && name.size() < 7) {
      node.number = static_cast<uint32_t>(std::stoul(std::string(name)));
      return add(node);
    }
    if (isa::find_special(name)) {
      return special(name);
    }
    std::vector<std::string_view> names(std::begin(kVariableNames), std::end(kVariableNames));
    return fail(fmt::format("there is no register or variable '${}'{}; registers are $r0 to $r126, "
                            "$d0 to $d62, $p0 to $p7, $t0 to $t15",
                            name,
                            isa::did_you_mean(name, names)));
  }

  int special(std::string_view name) {
    const auto found = isa::find_special(name);
    if (!found) {
      std::vector<std::string_view> names;
      names.reserve(isa::kSpecials.size());
      for (const isa::SpecialInfo& info : isa::kSpecials) {
        names.push_back(info.name);
      }
      return fail(fmt::format(
          "there is no special register '%{}'{}", name, isa::did_you_mean(name, names)));
    }
    Node node;
    node.kind = NodeKind::kSpecial;
    node.number = static_cast<uint32_t>(*found);
    return add(node);
  }

  int name() {
    const size_t before = at_;
    const std::string_view found = word();
    Node node;
    if (const auto space = find_space(found)) {
      node.kind = NodeKind::kAddress;
      node.space = *space;
      if (take(":")) { // the address is a whole sum: hbm:a+64
        node.left = binary(kAdditive);
        return add(node);
      }
      if (take("[")) {
        node.left = choice();
        if (!take("]")) {
          return fail("']' is missing");
        }
        return add(node);
      }
      return fail(fmt::format("after '{}' expected : or [ and an address", found));
    }
    const isa::Function& kernel = program_.kernel();
    for (uint32_t i = 0; i < kernel.params.size(); ++i) {
      if (kernel.params[i].name == found) {
        node.kind = NodeKind::kParam;
        node.number = i;
        return add(node);
      }
    }
    const std::vector<isa::Symbol>& symbols = program_.object().symbols;
    for (const bool is_own : {true, false}) {
      for (uint32_t i = 0; i < symbols.size(); ++i) {
        const bool is_mine = symbols[i].owner == program_.kernel_index();
        const bool is_file = symbols[i].owner == isa::kFileScope ||
                             !program_.object().functions[symbols[i].owner].is_kernel;
        if (symbols[i].name == found && (is_own ? is_mine : is_file)) {
          node.kind = NodeKind::kSymbol;
          node.number = i;
          return add(node);
        }
      }
    }
    if (const auto reg = find_register(found)) { // r3 for $r3, where nothing else has the name
      return register_node(*reg, found.size());
    }
    if (found == "true" || found == "false") { // as predicates are shown
      node.constant = {isa::Type::kS64, false, found == "true" ? uint64_t{1} : 0, 0};
      return add(node);
    }
    std::vector<std::string_view> names;
    for (const isa::Param& param : kernel.params) {
      names.push_back(param.name);
    }
    for (const isa::Symbol& symbol : symbols) {
      names.push_back(symbol.name);
    }
    at_ = before;
    return fail(fmt::format(
        "the kernel has no parameter or symbol '{}'{}", found, isa::did_you_mean(found, names)));
  }

  std::string_view text_;
  const sim::Program& program_;
  Expression::Tree* tree_ = nullptr;
  size_t at_ = 0;
  int depth_ = 0;
  std::string error_;
};

Expression::Expression() : tree_(new Tree) {}
Expression::~Expression() = default;

std::shared_ptr<const Expression>
Expression::parse(std::string_view text, const sim::Program& program, std::string& error) {
  std::shared_ptr<Expression> result(new Expression());
  ExpressionParser parser(text, program);
  if (!parser.parse(*result->tree_, error)) {
    return nullptr;
  }
  return result;
}

} // namespace pto::dbg
