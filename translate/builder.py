"""Instructions of one program under construction: counts fills and groups so that events need not name them."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from simfa import isa
from simfa.isa import Affine, Instruction, Slot
from simfa.translate.softmax_work import WARPGROUP_ROWS

WGMMA_DEPTH = 16  # k of an fp16 or bf16 WGMMA


class Mark(NamedTuple):
    """A moment of a builder: its instructions and counters so far."""

    length: int
    uses: Counter[tuple[str, str]]
    groups: Counter[str]


class Hole(NamedTuple):
    """A place where copies of a loop of so many instructions were left out."""

    position: int
    instructions: int
    copies: int


class Lowered(NamedTuple):
    """The instructions of one program, and the hole in them if their events were folded."""

    body: tuple[Instruction, ...]
    hole: Hole | None


class ProgramBuilder:
    """Collects a role's instructions for one tile.

    Each event stands for the next use of its ring: the third GEMM_QK_ISSUE reads `K[2]`. Groups are numbered by their
    commits.
    """

    def __init__(self) -> None:
        """Start an empty program."""
        self.body: list[Instruction] = []
        self._uses: Counter[tuple[str, str]] = Counter()
        self._groups: Counter[str] = Counter()

    def add(self, *instructions: Instruction) -> None:
        """Append instructions."""
        self.body.extend(instructions)

    def mark(self) -> Mark:
        """Return the present moment, for `skip`."""
        return Mark(len(self.body), self._uses.copy(), self._groups.copy())

    def skip(self, mark: Mark, copies: int) -> Hole:
        """Count on as if what was added since `mark` were added `copies` times more; return where that is missing."""
        for use, value in list(self._uses.items()):
            self._uses[use] += (value - mark.uses[use]) * copies
        for kind, value in list(self._groups.items()):
            self._groups[kind] += (value - mark.groups[kind]) * copies
        return Hole(len(self.body), len(self.body) - mark.length, copies)

    def next_slot(self, use: str, ring: str) -> Slot:
        """Return the next slot of a ring for one purpose ("acquire", "load", "wait", ...), counting from 0."""
        ordinal = self._uses[use, ring]
        self._uses[use, ring] += 1
        return Slot(ring, Affine(ordinal))

    def used(self, use: str, ring: str) -> int:
        """Return how many slots of a ring were taken for a purpose."""
        return self._uses[use, ring]

    def acquire(self, ring: str) -> None:
        """Append the acquisition of a ring's next stage."""
        self.add(isa.AcquireStage(slot=self.next_slot("acquire", ring)))

    def load(self, ring: str, y: int, columns: Iterable[int], *, multicast: bool = False) -> None:
        """Append the copies of one tile from row `y` on, a box for each of its first `columns`, by map `ring`."""
        slot = self.next_slot("load", ring)
        for x in columns:
            self.add(isa.TmaTensor(slot=slot, map=ring, x=x, y=Affine(y), multicast=multicast))

    def wait_until_filled(self, ring: str) -> None:
        """Append the wait for the fill that the next WGMMA reads from a ring."""
        self.add(isa.MbWait(slot=Slot(ring, Affine(self.used("multiply", ring)))))

    def release(self, ring: str, *, remote: bool = False) -> None:
        """Append the release of a ring's oldest stage that is not released yet."""
        self.add(isa.ReleaseStage(slot=self.next_slot("release", ring), remote=remote))

    def multiply(self, ring: str, *, d: str, a: str | Slot, n: int, count: int, registers: bool, dtype: str) -> None:
        """Append `count` WGMMAs of m64 n k16 on the next fill of a ring as a group of their own, with its commit."""
        group = Affine(self._groups["WGMMA"])
        self.add(
            isa.Wgmma(
                d=d,
                a=a,
                b=self.next_slot("multiply", ring),
                m=WARPGROUP_ROWS,
                n=n,
                k=WGMMA_DEPTH,
                count=count,
                mode="RS" if registers else "SS",
                group=group,
                dtype="bf16" if dtype == "bf16" else "fp16",
            ),
            isa.WgmmaCommit(group=group),
        )
        self._groups["WGMMA"] += 1

    def wait_for_products(self, outstanding: int) -> None:
        """Append the wait until at most `outstanding` committed WGMMA groups are in flight."""
        self.add(isa.WgmmaWait(group=Affine(self._groups["WGMMA"] - 1), outstanding=outstanding))

    def store(self, name: str, columns: Iterable[int]) -> None:
        """Append the stores of one tile as a group."""
        group = Affine(self._groups["store"])
        for x in columns:
            self.add(isa.TmaStore(map=name, x=x, y=Affine(0), group=group))
        self.add(isa.TmaCommit(group=group))
        self._groups["store"] += 1

    def wait_for_store(self) -> None:
        """Append the wait until the last store group has read its shared memory."""
        self.add(isa.TmaWait(group=Affine(self._groups["store"] - 1), outstanding=0, read=True))
