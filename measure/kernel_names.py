"""Kernel names: the function without template arguments, which helpers to leave out, which names mean one kernel.

Nsight Compute prints return types and drops namespaces, Nsight Systems keeps namespaces and casts in template
arguments, CUTLASS calls every kernel `device_kernel` and puts the class that does the work into the first template
argument.
"""

import re
from functools import lru_cache
from typing import NamedTuple

# Functions that only call the functor in their first template argument.
WRAPPERS = frozenset({"Kernel", "Kernel2", "device_kernel"})
# Functors that only guard another one by architecture.
_GUARD = re.compile(r"enable_sm\w*")

# Kernels that run beside attention: pattern over the function or functor, and what they do.
HELPERS: tuple[tuple[str, str], ...] = (
    (r"(?i)combine", "combines the partial results of split KV"),
    (r"(?i)prepare_(varlen|scheduler|seqlen)|scheduler_?metadata|prepare.*num_blocks", "prepares the tile scheduler"),
    (r"(?i)reshape_and_cache|cache_reshape|concat_and_cache", "copies K and V into the paged cache"),
)

_CAST = re.compile(r"\((?:unsigned |signed )?(?:bool|char|short|int|long|long long|std::\w+|cutlass::\w+)\)")
_SCOPE = re.compile(r"(?:\(anonymous namespace\)|<unnamed>|\{anonymous\}|\b[A-Za-z_]\w*)::")
_UNNAMED = re.compile(r"\(anonymous namespace\)|<unnamed>|\{anonymous\}")
_OPERATOR = re.compile(r"operator\s*(\(\)|<=>|<<=?|>>=?|->\*?|<=?|>=?|[^\w\s(])")
_PAIRS = {">": "<", ")": "(", "]": "[", "}": "{"}


class KernelName(NamedTuple):
    """The parts of the name `full`.

    `function` is without namespaces and template arguments, `qualified` with namespaces, `functor` inside a wrapper.

    `identity` is the same for one kernel under both Nsight tools: no namespaces, return type, casts, parameters,
    blanks.
    """

    full: str
    function: str
    qualified: str
    functor: str | None
    identity: str
    mangled: bool
    cut: bool

    def helper(self) -> str | None:
        """Return what the kernel helps with, `None` for a kernel that is no helper."""
        for name in (self.function, self.functor or ""):
            for pattern, purpose in HELPERS:
                if re.search(pattern, name):
                    return purpose
        return None

    def matches(self, pattern: re.Pattern[str]) -> bool:
        """Return whether the pattern is found in the function's or the functor's name, without template arguments."""
        return any(name and pattern.search(name) for name in (self.function, self.qualified, self.functor))


@lru_cache(maxsize=8192)
def parse(name: str) -> KernelName:
    """Return the parts of a kernel name in any of its spellings; never fails, an odd name is its own function."""
    text = name.strip()
    cut = text.endswith(("...", "\u2026"))
    if text.startswith("_Z"):
        parts, functor = _mangled(text)
        if parts:
            return KernelName(name, parts[-1], "::".join(parts), functor, text, True, cut)
    # A return type stands only before parameters; `Fav3 fwd` of a benchmark is a name of two words.
    head, arguments = _split(text) if any(sign in text for sign in "(<{:") else (text, "")
    qualified = head or text
    function = _last(qualified) or text
    functor = _functor(arguments) if function in WRAPPERS else None
    shown = f"{function}{'<' + arguments + '>' if arguments else ''}"
    identity = re.sub(r"\s+", "", _SCOPE.sub("", _CAST.sub("", shown)))
    return KernelName(name, function, qualified, functor, identity, False, cut)


def _last(qualified: str) -> str:
    return qualified.rsplit("::", 1)[-1].strip()


def _split(text: str) -> tuple[str, str]:
    """Return the qualified name before its template arguments, and those arguments (of the name, not of a scope)."""
    plain: list[str] = []
    arguments: list[str] = []
    stack: list[str] = []
    position = 0
    while position < len(text):
        letter = text[position]
        whole = None if stack else _UNNAMED.match(text, position) or _OPERATOR.match(text, position)
        if whole and (whole.re is _UNNAMED or not plain or not (plain[-1].isalnum() or plain[-1] == "_")):
            plain.extend(whole[0])
            position = whole.end()
            continue
        if not stack and letter == "(":
            break
        if not stack and letter in "< ":
            # Before a blank stood a return type, before a second `<` a scope: their arguments are not the name's.
            arguments = []
        if stack and not (len(stack) == 1 and _PAIRS.get(letter) == stack[0]):
            arguments.append(letter)
        if letter in "<([{":
            stack.append(letter)
        elif stack and _PAIRS.get(letter) == stack[-1]:
            stack.pop()
        elif not stack:
            plain.append(letter)
        position += 1
    return _without_return_type("".join(plain).strip()), "".join(arguments).strip()


def _without_return_type(text: str) -> str:
    kept = text.replace("(anonymous namespace)", "(anonymous\0namespace)")
    words = kept.split(" ")
    return (words[-1] if words else kept).replace("\0", " ").removeprefix("::")


def _functor(arguments: str) -> str | None:
    """Return the class that a wrapper's first template argument names, looking through architecture guards."""
    for _ in range(4):
        head, arguments = _split(_first(arguments))
        name = _last(head)
        if not _GUARD.fullmatch(name):
            return name or None
    return None


def _first(arguments: str) -> str:
    """Return the first of comma-separated template arguments."""
    depth = 0
    for position, letter in enumerate(arguments):
        if letter in "<([{":
            depth += 1
        elif letter in _PAIRS:
            depth -= 1
        elif letter == "," and depth == 0:
            return arguments[:position].strip()
    return arguments.strip()


def _mangled(text: str) -> tuple[list[str], str | None]:
    """Return the identifiers of an Itanium-mangled function name, and the functor where the function is a wrapper."""
    parts, rest = _identifiers(text[2:])
    name = parts[-1] if parts else ""
    while (name in WRAPPERS or _GUARD.fullmatch(name)) and rest.startswith("I"):
        names, rest = _identifiers(rest[1:])
        name = names[-1] if names else ""
    return parts, name if parts and parts[-1] in WRAPPERS and name != parts[-1] and name else None


def _identifiers(text: str) -> tuple[list[str], str]:
    """Return the length-prefixed identifiers `text` starts with, and what follows them."""
    nested = re.match(r"N[KVr]*(S[0-9A-Z]*_|St)?", text)
    rest = text[nested.end() :] if nested else text
    parts: list[str] = []
    while (digits := re.match(r"[1-9]\d{0,3}", rest)) and (nested or not parts):
        length = int(digits[0])
        identifier = rest[digits.end() : digits.end() + length]
        if len(identifier) < length:
            break
        parts.append("(anonymous namespace)" if identifier.startswith("_GLOBAL__N_") else identifier)
        rest = rest[digits.end() + length :]
    return parts, rest
