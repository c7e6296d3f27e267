// SPDX-License-Identifier: MIT
// The error that a user can do something about: one line that says file, place, what was expected,
// what came, what to do.
#pragma once

#include <stdexcept>
#include <string>

namespace mpssm::base {

/// What a caller may do about an error.
enum class ErrorKind {
  kInput,     ///< another file, setting or argument may work
  kSystem,    ///< the system refused: a full disk, no permission; nothing will work until it is
              ///< mended
  kDiverged,  ///< a training that cannot go on; another point of a search may
};

/// What an error says, part by part; empty parts are left out of the line
/// "WHERE: WHAT, expected EXPECTED, got GOT; HINT".
struct ErrorText {
  std::string where = {};     ///< file and place in it, option, setting
  std::string what = {};      ///< what is wrong, if the next two do not say it
  std::string expected = {};  ///< "2 cells"
  std::string got = {};       ///< "3"
  std::string hint = {};      ///< "save the file as UTF-8"
};

/// Input that cannot be used, and what befalls the work on it. what() is one line for the user,
/// whatever bytes the parts came with.
class Error : public std::runtime_error {
 public:
  explicit Error(ErrorText text, ErrorKind kind = ErrorKind::kInput);
  /// "WHERE: WHAT". A path is a fine `where`.
  Error(std::string where, std::string what, ErrorKind kind = ErrorKind::kInput);
  /// For what happened nowhere in particular.
  explicit Error(std::string what, ErrorKind kind = ErrorKind::kInput);

  ErrorKind kind() const { return kind_; }
  const ErrorText& text() const { return text_; }

  /// The same error, said to be elsewhere: whoever read the file knows better than whoever judged
  /// its content.
  Error at(std::string where) const;
  /// The same error with `where` before the place that it names itself.
  Error within(const std::string& where) const;
  /// The same error with another remedy.
  Error with_hint(std::string hint) const;

 private:
  ErrorText text_;
  ErrorKind kind_;
};

/// Throws an Error that says why.
void refuse_if(bool is_wrong, const std::string& why);

}  // namespace mpssm::base
