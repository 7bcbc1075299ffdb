// Lists as text, so that a failed check shows both at once.
#pragma once

#include <sstream>
#include <string>

namespace simfa::test {

// Appends one word made of `parts`; words are separated by blanks.
template <typename... Parts>
void add_word(std::string& text, const Parts&... parts) {
    std::ostringstream out;
    if (!text.empty()) out << ' ';
    (out << ... << parts);
    text += out.str();
}

}  // namespace simfa::test
