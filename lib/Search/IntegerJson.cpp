#include "IntegerJson.h"

#include "windlass/Support/Flags.h"
#include "windlass/Support/Printable.h"

#include <limits>
#include <vector>

using namespace windlass;
using namespace windlass::search;
using llvm::StringRef;
using llvm::Twine;

void IntegerJson::fail(const Twine &what) {
  if (error.empty())
    error = what.str();
}

bool IntegerJson::expect(char c) {
  if (take(c))
    return true;
  if (at == text.size())
    fail("ends where '" + Twine(c) + "' is wanted: it is cut short");
  else
    fail("has " + printable(text.substr(at, 1)) + " at byte " + Twine(at) + " where '" + Twine(c) + "' is wanted");
  return false;
}

StringRef IntegerJson::string() {
  if (!expect('"'))
    return "";
  size_t end = at;
  while (end < text.size() && text[end] != '"')
    end += text[end] == '\\' ? 2 : 1;
  if (end >= text.size()) {
    fail("has a string without an end");
    return "";
  }
  StringRef content = text.slice(at, end);
  at = end + 1;
  return content;
}

int64_t IntegerJson::integer() {
  skipSpace();
  size_t begin = at;
  int64_t value = 0;
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  while (!failed() && at < text.size() && text[at] >= '0' && text[at] <= '9') {
    int64_t digit = text[at] - '0';
    if (value > (most - digit) / 10) {
      fail("has a number above 2^63 - 1 at byte " + Twine(begin));
      return 0;
    }
    value = value * 10 + digit;
    ++at;
  }
  if (failed())
    return 0;
  bool goesOn = at < text.size() && (text[at] == '.' || text[at] == 'e' || text[at] == 'E');
  if (at == begin || goesOn) {
    if (at == text.size())
      fail("ends where a number is wanted: it is cut short");
    else
      fail("has no integer of 0 or more at byte " + Twine(begin) + " but " + printable(text.substr(begin, 12)));
    return 0;
  }
  return value;
}

void IntegerJson::object(llvm::ArrayRef<Field> fields) {
  std::vector<bool> seen(fields.size());
  if (!expect('{'))
    return;
  if (!take('}')) {
    do {
      StringRef key = string();
      if (!expect(':'))
        return;
      size_t i = 0;
      while (i < fields.size() && fields[i].key.rtrim('?') != key)
        ++i;
      if (i == fields.size()) {
        std::vector<std::string> names;
        for (const Field &field : fields)
          names.push_back(field.key.rtrim('?').str());
        std::string nearest = nearestOf(key, names);
        return fail("has the unknown key " + printable(key) +
                    (nearest.empty() ? "" : "; the nearest is '" + nearest + "'"));
      }
      if (seen[i])
        return fail("has the key " + printable(key) + " twice in one object");
      seen[i] = true;
      fields[i].read();
    } while (!failed() && take(','));
    expect('}');
  }
  for (size_t i = 0; i < fields.size(); ++i)
    if (!seen[i] && !fields[i].key.ends_with("?"))
      fail("has no '" + fields[i].key + "'");
}

void IntegerJson::finish() {
  skipSpace();
  if (!failed() && at != text.size())
    fail("goes on after its end, at byte " + Twine(at));
}
