#include "windlass/Support/StrictJson.h"

#include "windlass/Support/Flags.h"
#include "windlass/Support/InputFile.h"
#include "windlass/Support/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>
#include <charconv>

using namespace windlass;
using llvm::StringRef;
using llvm::Twine;

llvm::Error windlass::makeError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// Looks for what llvm::json does not refuse: great depth (it recurses), keys that come twice (it keeps the last), and
/// what takes much more memory than its text does: an object with a key has a table of 64 at least.
static llvm::Error scan(StringRef text) {
  constexpr size_t kMaxDepth = 32, kMaxMemory = size_t(1) << 30, kObjectBytes = 4096, kValueBytes = 192;
  constexpr size_t kArrayBytes = 64; // for the first value, which no comma counts
  size_t memory = 0;
  struct Level {
    bool isObject;
    bool expectsKey;
    llvm::StringSet<> keys;
  };
  std::vector<Level> levels;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '{' || c == '[') {
      if (levels.size() == kMaxDepth)
        return makeError("nests deeper than " + Twine(kMaxDepth) + " levels");
      levels.push_back({c == '{', c == '{', {}});
      memory += c == '[' ? kArrayBytes : 0;
    } else if (c == '}' || c == ']') {
      if (!levels.empty())
        levels.pop_back();
    } else if (c == ',') {
      memory += kValueBytes;
      if (!levels.empty())
        levels.back().expectsKey = levels.back().isObject;
    } else if (c == '"') {
      size_t end = i + 1;
      while (end < text.size() && text[end] != '"')
        end += text[end] == '\\' ? 2 : 1;
      if (end >= text.size())
        return makeError("has a string without an end");
      if (!levels.empty() && levels.back().expectsKey) {
        // The key as the parser reads it: an escape may hide that two are equal.
        llvm::Expected<llvm::json::Value> key = llvm::json::parse(text.slice(i, end + 1));
        if (!key)
          return key.takeError();
        StringRef name = key->getAsString().value_or("");
        memory += levels.back().keys.empty() ? kObjectBytes : 0;
        if (!levels.back().keys.insert(name).second)
          return makeError("has the key " + printable(name) + " twice in one object");
        levels.back().expectsKey = false;
      }
      i = end;
    }
    if (memory > kMaxMemory)
      return makeError("has so many values that they would take more than 1 GiB of memory");
  }
  return llvm::Error::success();
}

llvm::Expected<llvm::json::Value> windlass::parseStrictJson(StringRef text, size_t maxBytes) {
  if (text.size() > maxBytes)
    return makeError("is larger than " + Twine(maxBytes) + " bytes");
  if (llvm::Error error = scan(text))
    return std::move(error);
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value) {
    std::string message = llvm::toString(value.takeError());
    llvm::replace(message, '\n', ' ');
    return makeError("is no JSON: " + message);
  }
  return value;
}

void windlass::printJson(llvm::raw_ostream &os, const llvm::json::Value &value, int lineDepth, int depth) {
  const llvm::json::Object *object = value.getAsObject();
  const llvm::json::Array *array = value.getAsArray();
  bool isSplit = depth < lineDepth && !(object && object->empty()) && !(array && array->empty());
  auto separate = [&](bool isFirst, int indentDepth) {
    os << (isFirst ? "" : ",");
    if (isSplit)
      (os << '\n').indent(2 * indentDepth);
  };
  if (object) {
    std::vector<StringRef> keys;
    for (const auto &entry : *object)
      keys.push_back(entry.first);
    llvm::sort(keys);
    os << '{';
    for (StringRef key : keys) {
      separate(key == keys.front(), depth + 1);
      os << llvm::json::Value(key) << (isSplit ? ": " : ":");
      printJson(os, *object->get(key), lineDepth, depth + 1);
    }
    if (isSplit)
      separate(true, depth);
    os << '}';
  } else if (array) {
    os << '[';
    for (const llvm::json::Value &element : *array) {
      separate(&element == &array->front(), depth + 1);
      printJson(os, element, lineDepth, depth + 1);
    }
    if (isSplit)
      separate(true, depth);
    os << ']';
  } else if (std::optional<double> number = value.getAsNumber(); number && !value.getAsInteger()) {
    char text[64];
    os << StringRef(text, std::to_chars(text, text + sizeof text, *number).ptr - text);
  } else {
    os << value;
  }
}

llvm::Expected<llvm::json::Value> windlass::readStrictJson(StringRef path, int64_t mostBytes, StringRef readAs) {
  auto buffer = readInputFile(path, mostBytes, readAs);
  if (!buffer)
    return buffer.takeError();
  llvm::Expected<llvm::json::Value> document = parseStrictJson((*buffer)->getBuffer());
  if (!document)
    return makeError(printable(path) + ": " + llvm::toString(document.takeError()));
  return document;
}

ObjectReader::ObjectReader(const llvm::json::Value &value, std::string path)
    : object(value.getAsObject()), path(std::move(path)) {
  if (!object)
    message = this->path.empty() ? "is no JSON object" : this->path + " is no object";
}

std::string ObjectReader::getPath(StringRef key) const {
  std::string name = path;
  if (!name.empty() && !key.empty())
    name += '.';
  std::string text = printable(key);
  return name + text.substr(1, text.size() - 2);
}

void ObjectReader::fail(StringRef key, const Twine &text) {
  if (message.empty())
    message = (getPath(key) + " " + text).str();
}

const llvm::json::Value *ObjectReader::find(StringRef key) {
  known.insert(key.str());
  return object ? object->get(key) : nullptr;
}

const llvm::json::Value *ObjectReader::get(StringRef key) {
  const llvm::json::Value *value = find(key);
  if (!value)
    fail(key, "is missing");
  return value;
}

int64_t ObjectReader::getInteger(StringRef key, int64_t minimum, int64_t maximum) {
  const llvm::json::Value *value = get(key);
  std::optional<int64_t> integer = value ? value->getAsInteger() : std::nullopt;
  if (value && (!integer || *integer < minimum || *integer > maximum))
    fail(key, "must be an integer from " + Twine(minimum) + " to " + Twine(maximum));
  return integer && *integer >= minimum && *integer <= maximum ? *integer : minimum;
}

double ObjectReader::getNumber(StringRef key, double maximum) {
  const llvm::json::Value *value = get(key);
  std::optional<double> number = value ? value->getAsNumber() : std::nullopt;
  bool isGood = number && *number > 0 && *number <= maximum;
  if (value && !isGood)
    fail(key, "must be a number above 0 and at most " + Twine(static_cast<int64_t>(maximum)));
  return isGood ? *number : maximum;
}

std::string ObjectReader::getString(StringRef key) {
  const llvm::json::Value *value = get(key);
  std::optional<StringRef> text = value ? value->getAsString() : std::nullopt;
  if (value && !text)
    fail(key, "must be a string");
  return text.value_or("").str();
}

bool ObjectReader::getBoolean(StringRef key) {
  const llvm::json::Value *value = get(key);
  std::optional<bool> boolean = value ? value->getAsBoolean() : std::nullopt;
  if (value && !boolean)
    fail(key, "must be true or false");
  return boolean.value_or(false);
}

std::vector<std::string> ObjectReader::getStrings(StringRef key) {
  std::vector<std::string> strings;
  const llvm::json::Value *value = get(key);
  const llvm::json::Array *array = value ? value->getAsArray() : nullptr;
  if (value && !array)
    fail(key, "must be a list of strings");
  if (array)
    for (const llvm::json::Value &element : *array) {
      std::optional<StringRef> text = element.getAsString();
      if (!text) {
        fail(key, "must be a list of strings");
        return {};
      }
      strings.push_back(text->str());
    }
  return strings;
}

std::vector<int64_t> ObjectReader::getIntegers(StringRef key) {
  std::vector<int64_t> integers;
  const llvm::json::Value *value = get(key);
  const llvm::json::Array *array = value ? value->getAsArray() : nullptr;
  if (value && !array)
    fail(key, "must be a list of integers");
  if (array)
    for (const llvm::json::Value &element : *array) {
      std::optional<int64_t> integer = element.getAsInteger();
      if (!integer) {
        fail(key, "must be a list of integers");
        return {};
      }
      integers.push_back(*integer);
    }
  return integers;
}

std::vector<std::string> ObjectReader::getKeys() const {
  std::vector<std::string> keys;
  if (object)
    for (const auto &entry : *object)
      keys.push_back(StringRef(entry.first).str());
  llvm::sort(keys);
  return keys;
}

llvm::Error ObjectReader::takeError() {
  if (message.empty())
    for (const std::string &key : getKeys())
      if (!known.count(key)) {
        std::string nearest = nearestOf(key, std::vector<std::string>(known.begin(), known.end()));
        fail(key, nearest.empty() ? "is no known key" : "is no known key; the nearest is '" + nearest + "'");
        break;
      }
  if (message.empty())
    return llvm::Error::success();
  return makeError(message);
}
