// SPDX-License-Identifier: MIT
#include "mpssm/base/error.h"

#include <cstddef>
#include <utility>

#include "mpssm/base/printable.h"

namespace mpssm::base {
namespace {

std::string line_of(const ErrorText& text) {
  constexpr std::size_t kMaxLength = 8192;
  std::string line = text.where;
  const auto add = [&](const char* before, const char* word, const std::string& part) {
    if (part.empty()) return;
    if (!line.empty()) line += before;
    line.append(word).append(part);
  };
  add(": ", "", text.what);
  add(text.what.empty() ? ": " : ", ", "expected ", text.expected);
  add(", ", "got ", text.got);
  add("; ", "", text.hint);
  return printable(line, kMaxLength);
}

}  // namespace

Error::Error(ErrorText text, ErrorKind kind)
    : std::runtime_error(line_of(text)), text_(std::move(text)), kind_(kind) {}

Error::Error(std::string where, std::string what, ErrorKind kind)
    : Error(ErrorText{.where = std::move(where), .what = std::move(what)}, kind) {}

Error::Error(std::string what, ErrorKind kind) : Error(ErrorText{.what = std::move(what)}, kind) {}

Error Error::at(std::string where) const {
  ErrorText text = text_;
  text.where = std::move(where);
  return Error(std::move(text), kind_);
}

Error Error::within(const std::string& where) const {
  return at(text_.where.empty() ? where : where + ": " + text_.where);
}

Error Error::with_hint(std::string hint) const {
  ErrorText text = text_;
  text.hint = std::move(hint);
  return Error(std::move(text), kind_);
}

void refuse_if(bool is_wrong, const std::string& why) {
  if (is_wrong) throw Error(why);
}

}  // namespace mpssm::base
