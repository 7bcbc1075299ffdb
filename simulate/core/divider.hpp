// Division by a number known at construction, as one multiplication.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace simfa {

// Exact for dividends below 2^47 and divisors from 1 to 65535: with m = ceil(2^63 / d) the error of n * m / 2^63 is
// below n / 2^63 < 1 / d.
class Divider {
  public:
    explicit Divider(std::uint64_t divisor) : divisor_(divisor) {
        if (divisor < 1 || divisor > 65535) throw std::invalid_argument("divisor must be between 1 and 65535");
        factor_ = (kHalf - 1) / divisor + 1;
    }

    std::uint64_t divisor() const { return divisor_; }

    std::uint64_t quotient(std::uint64_t dividend) const {
        return static_cast<std::uint64_t>((static_cast<Wide>(2 * dividend) * factor_) >> 64);
    }

    std::uint64_t remainder(std::uint64_t dividend) const { return dividend - quotient(dividend) * divisor_; }

  private:
    __extension__ using Wide = unsigned __int128;
    static constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;

    std::uint64_t divisor_;
    std::uint64_t factor_;
};

}  // namespace simfa
