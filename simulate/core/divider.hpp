// Division by a number known at construction, as one multiplication.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace simfa {

// Exact for dividends below 2^48 and divisors from 1 to 65535: with m = ceil(2^64 / d) the error of n * m / 2^64 is
// below n / 2^64 < 1 / d.
class Divider {
  public:
    explicit Divider(std::uint64_t divisor) : divisor_(divisor), factor_(~std::uint64_t{0}) {
        if (divisor < 1 || divisor > 65535) throw std::invalid_argument("divisor must be between 1 and 65535");
        if (divisor > 1) factor_ = ~std::uint64_t{0} / divisor + 1;
    }

    std::uint64_t divisor() const { return divisor_; }

    std::uint64_t quotient(std::uint64_t dividend) const {
        if (divisor_ == 1) return dividend;
        return static_cast<std::uint64_t>((static_cast<Wide>(dividend) * factor_) >> 64);
    }

    std::uint64_t remainder(std::uint64_t dividend) const { return dividend - quotient(dividend) * divisor_; }

  private:
    __extension__ using Wide = unsigned __int128;

    std::uint64_t divisor_;
    std::uint64_t factor_;
};

}  // namespace simfa
